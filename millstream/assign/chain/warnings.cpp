// SPDX-License-Identifier: Apache-2.0
// Labels that cannot help are said: more streams than the graph is wide, one label a layer, a plan that gains nothing.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"
#include "millstream/assign/cost_model.h"
#include "millstream/assign/width.h"

namespace millstream::chain {
namespace {

constexpr std::uint32_t kManyLabels = 8;     // fewer labels are nobody's mistake
constexpr double kWorthwhile = 0.05;         // a plan with labels should gain at least this share
constexpr std::size_t kMaxWeighed = 200'000;

// Streams of labels that start, in depth, behind the end of the label stream before them.
struct Depths {
  std::uint32_t labels = 0;
  std::uint32_t in_a_row = 0;
};

Depths depths_of(const TaskGraph& tasks, const StreamAssignment& on) {
  IdVec<NodeId, std::uint32_t> depth(tasks.node_count(), 0);
  IdVec<StreamId, std::pair<std::uint32_t, std::uint32_t>> range(on.streams.size(), {0xffffffffu, 0});
  for (const NodeId n : tasks.order()) {
    for (const NodeId p : tasks.predecessors(n)) depth[n] = std::max(depth[n], depth[p] + 1);
    const auto s = on.stream_of(n);
    if (!s || on.streams[*s].label.empty()) continue;
    range[*s].first = std::min(range[*s].first, depth[n]);
    range[*s].second = std::max(range[*s].second, depth[n]);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  for (const auto& r : range) {
    if (r.first != 0xffffffffu) ranges.push_back(r);
  }
  std::sort(ranges.begin(), ranges.end());
  Depths out;
  out.labels = static_cast<std::uint32_t>(ranges.size());
  for (std::size_t i = 1; i < ranges.size(); ++i) out.in_a_row += ranges[i].first > ranges[i - 1].second;
  return out;
}

// The engine that is busy for the largest share of the predicted span.
void note_saturated(const Graph& graph, const Target& target, const StreamAssignment& on, Error& warning) {
  const auto engines = resolve_engines(graph, target);
  if (!engines.ok() || on.estimate->span_us <= 0) return;
  const IdVec<NodeId, double> durations = durations_us(graph, target, on.threads_per_op);
  std::vector<double> busy(target.engines.size(), 0);
  for (const NodeId n : graph.nodes()) {
    if (on.placement[n]) busy[(*engines)[n].index] += durations[n];
  }
  const auto most = static_cast<std::size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
  warning.note(fmt::format("engine {} has {:.1f} us of work in a plan of {:.1f} us; the plan is limited by {}",
                           target.engines[EngineId(most)].name, busy[most], on.estimate->span_us, on.estimate->limited_by));
}

}  // namespace

void warn_of_labels(const Graph& graph, const Target& target, StreamAssignment& on) {
  std::uint32_t labels = 0;
  for (const StreamInfo& s : on.streams) labels += !s.label.empty();
  if (labels == 0 || graph.node_count() > kMaxWeighed || graph.scope_count() > 1) return;
  const TaskGraph tasks(graph);
  const auto say = [&](std::string message) -> Error& {
    return on.warnings.emplace_back(Error{ErrorCode::no_effect, std::move(message)});
  };
  const Width width = width_of(tasks, {});
  if (on.streams.size() > std::max(1u, width.size())) {
    say(fmt::format("{} streams, {} of them labels', but {}{} of the graph's nodes are independent at any time", on.streams.size(), labels,
                    width.exact ? "only " : "about ", width.size()))
        .note("streams beyond that cost waits and cannot run at the same time")
        .help("give nodes that follow each other the same label");
  }
  const Depths depths = depths_of(tasks, on);
  if (depths.labels >= kManyLabels && depths.in_a_row * 4 >= (depths.labels - 1) * 3) {
    say(fmt::format("{} labels stand one behind the other: their number grows with the depth of the model", depths.labels))
        .note("a stream for each layer adds waits and no overlap")
        .help("use one label for all layers, or one for each branch");
  }
  if (on.estimate && on.streams.size() > 1 && on.estimate->single_stream_us > 0) {
    const double gain = 1 - on.estimate->span_us / on.estimate->single_stream_us;
    if (gain < kWorthwhile) {
      Error& e = say(gain < 0 ? fmt::format("the labelled branches are predicted {:.1f} % slower than one stream", -gain * 100)
                              : fmt::format("the labelled branches are predicted to gain {:.1f} % over one stream", gain * 100));
      e.note(fmt::format("{} streams: {:.1f} us; one stream: {:.1f} us", on.streams.size(), on.estimate->span_us, on.estimate->single_stream_us));
      note_saturated(graph, target, on, e);
      if (on.estimate->unknown_costs != 0) {
        e.note(fmt::format("{} of {} nodes have no cost that is known and count as one launch each", on.estimate->unknown_costs, graph.node_count()));
      }
      e.help("drop the labels, or label longer branches of another engine");
    }
  }
}

}  // namespace millstream::chain
