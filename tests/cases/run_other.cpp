// SPDX-License-Identifier: Apache-2.0
// Stages e2e, runtime and prepass.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/graph/group_chain.h"
#include "millstream/runtime/stream_pools.h"
#include "tests/cases/case.h"

namespace millstream::cases {
namespace {

std::string name_of(const Case& c, NodeId n) { return std::string(c.graph.name(n)); }

// The getters of the summary, from what compile returns.
Json summary_of(const Case& c, const Compiled& compiled) {
  const StreamAssignment& on = compiled.assignment;
  std::set<std::string> labels;
  Json nodes_of_label = Json::object();
  std::set<std::int64_t> attached;
  bool by_pass = false;
  std::vector<std::int64_t> pieces(on.streams.size(), 0);
  for (const PhysicalStream& p : compiled.schedule.streams) {
    if (!p.relay) ++pieces[p.logical.index];
  }
  std::int64_t logical = 0;
  std::set<std::int64_t> each;
  for (const StreamId s : ids<StreamId>(on.streams.size())) {
    const StreamInfo& info = on.streams[s];
    by_pass = by_pass || info.assigned_by_pass;
    if (info.attached) {
      attached.insert(s.index);
      continue;
    }
    ++logical;
    each.insert(pieces[s.index]);
    if (!info.user) continue;
    labels.insert(info.label);
    for (const NodeId n : c.graph.order()) {
      if (on.stream_of(n) == s) nodes_of_label[info.label].push_back(name_of(c, n));
    }
  }
  Json out;
  out["logical_stream_count"] = logical;
  out["usr_stream_labels"] = labels;
  out["is_assigned_by_stream_pass"] = by_pass;
  out["attached_stream_ids"] = attached;
  if (each.size() == 1) out["physical_stream_nums_each"] = *each.begin();
  out["nodes_of_label"] = nodes_of_label;
  return out;
}

Result<void> whole(const Case& c, const CompileOptions& given, Outcome& outcome) {
  CompileOptions options = given;
  options.assign.strategy = Strategy::ge;
  MST_TRY(const Compiled compiled, compile(c.graph, c.target, options));
  show_streams(c, compiled.assignment, outcome);
  show_syncs(c, compiled.sync, outcome);
  for (const NodeId n : c.graph.nodes()) {
    if (!compiled.assignment.placement[n]) outcome.unassigned_end_on = compiled.assignment.reported_stream(n).index;
  }
  std::map<std::uint32_t, std::int64_t> open;
  for (const PhysicalStream& p : compiled.schedule.streams) {
    for (const Task& t : p.tasks) {
      if (t.kind == Task::Kind::record) ++open[t.index];
      if (t.kind == Task::Kind::wait) --open[t.index];
    }
  }
  outcome.send_recv_balanced = std::all_of(open.begin(), open.end(), [](const auto& e) { return e.second == 0; });
  outcome.physical_stream_num = static_cast<std::int64_t>(compiled.schedule.streams.size());
  outcome.summary = summary_of(c, compiled);
  return {};
}

// Streams that are only numbers.
struct Counted {
  std::vector<std::unique_ptr<int>> made;
  std::size_t created = 0;
  StreamSource source() {
    return {[this](StreamKind) -> Result<StreamHandle> {
              ++created;
              made.push_back(std::make_unique<int>(static_cast<int>(created)));
              return static_cast<StreamHandle>(made.back().get());
            },
            [](StreamHandle) {}};
  }
};

}  // namespace

Outcome run_whole(const Case& c, const CompileOptions& options) {
  Outcome outcome;
  if (auto done = whole(c, options, outcome); !done.ok()) outcome.error = done.error();
  return outcome;
}

Outcome run_steps(const Case& c) {
  Outcome outcome;
  outcome.ran_steps = true;
  Counted v1_streams, v2_streams;
  SharedStreams shared(v1_streams.source());
  auto list = std::make_unique<StreamList>(v2_streams.source(), StreamKind{});
  std::vector<StreamHandle> before;
  std::map<std::string, StreamHandle> named;
  std::size_t at = 0;
  for (const Json& step : c.json.at("steps")) {
    const auto fail = [&](std::string what) { outcome.failed_steps.push_back(fmt::format("step {} {}: {}", at, step.dump(), what)); };
    const auto op = step.at("op").get<std::string>();
    if (op == "v2.acquire") {
      const auto count = step.at("count").get<std::size_t>();
      const auto got = list->acquire(count);
      if (step.contains("expect") && got.ok() != (step.at("expect") == "ok")) fail(got.ok() ? "ok" : to_string(got.error()));
      if (got.ok() && got->size() != count) fail(fmt::format("{} streams", got->size()));
      if (got.ok()) {
        for (std::size_t i = 0; i < std::min(before.size(), got->size()); ++i) {
          if ((*got)[i] != before[i]) fail(fmt::format("stream {} is another one", i));
        }
        if (got->size() > before.size()) before.assign(got->begin(), got->end());
      }
      if (step.contains("created_total") && v2_streams.created != step.at("created_total")) fail(fmt::format("{} created", v2_streams.created));
    } else if (op == "v2.destroy") {
      list = std::make_unique<StreamList>(v2_streams.source(), StreamKind{});
      before.clear();
    } else if (op == "v1.get_or_create") {
      const std::size_t had = v1_streams.created;
      const auto got = shared.acquire({step.at("rt_model_id").get<std::uint32_t>(),
                                       {step.at("priority").get<std::int32_t>(), step.at("flag").get<std::uint32_t>()},
                                       step.at("task_num").get<std::uint64_t>()});
      if (!got.ok()) {
        fail(to_string(got.error()));
      } else {
        named[step.at("as").get<std::string>()] = *got;
        if (step.contains("expect_new") && step.at("expect_new") != (v1_streams.created > had)) fail(v1_streams.created > had ? "a new stream" : "a stream that was there");
        if (step.contains("expect_same_as") && named[step.at("expect_same_as").get<std::string>()] != *got) fail("another stream");
      }
    } else if (op == "v1.destroy") {
      if (auto done = shared.release(named[step.at("as").get<std::string>()], step.value("force", false)); !done.ok()) fail(to_string(done.error()));
    } else {
      fail("unknown step");
    }
    ++at;
  }
  return outcome;
}

Outcome run_prepass(const Case& c, const CompileOptions&) {
  Outcome outcome;
  std::vector<ControlEdge> added;
  for (const Json& pass : c.option("prepass")) {
    if (pass == "ParallelGroupOrder") {
      added = group_chain(c.graph);
    } else {
      outcome.error = Error{ErrorCode::usage, fmt::format("there is no graph pass {}", pass.dump())};
      return outcome;
    }
  }
  outcome.control_edges.emplace();
  outcome.changed = !added.empty();
  const auto existing = c.graph.control_edges();
  added.insert(added.end(), existing.begin(), existing.end());
  for (const ControlEdge& e : added) outcome.control_edges->insert({name_of(c, e.from), name_of(c, e.to)});
  return outcome;
}

}  // namespace millstream::cases
