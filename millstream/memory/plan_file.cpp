// SPDX-License-Identifier: Apache-2.0
// Sections of a plan file, written and read; the file itself.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/import/file_bytes.h"
#include "millstream/memory/plan_bytes.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNoId = 0xffffffffu;

// ---- assignment

void write(PlanWriter& w, const Estimate& e) {
  w.real(e.span_us);
  w.real(e.single_stream_us);
  w.real(e.lower_bound_us);
  w.real(e.overlap);
  w.text(e.limited_by);
  w.number(e.unknown_costs);
}

void write(PlanWriter& w, const StreamAssignment& on) {
  w.number(on.rules.size());
  for (const std::string& r : on.rules) w.text(r);
  w.number(on.reasons.size());
  for (const std::string& r : on.reasons) w.text(r);
  w.number(on.streams.size());
  for (const StreamInfo& s : on.streams) {
    w.text(s.label);
    w.number(s.engine ? std::uint64_t{s.engine->index} + 1 : 0);
    w.signed_number(s.priority);
    w.number((s.attached ? 1 : 0) | (s.assigned_by_pass ? 2 : 0) | (s.user ? 4 : 0));
  }
  w.number(on.placement.size());
  for (const auto& p : on.placement) {
    w.number(p ? std::uint64_t{p->stream.index} + 1 : 0);
    if (p) w.number(p->decided_by.index);
  }
  w.number(on.threads_per_op);
  w.number(on.considered.size());
  for (const Candidate& c : on.considered) {
    w.number(c.streams);
    w.number(c.threads_per_op);
    w.real(c.span_us);
    w.number(c.pairs);
  }
  w.number(on.estimate ? 1 : 0);
  if (on.estimate) write(w, *on.estimate);
  w.number(on.clusters);
  w.number(on.skips_engines ? 1 : 0);
  std::vector<NodeId> attached;
  if (!on.attached.empty()) {
    for (const NodeId n : ids<NodeId>(on.placement.size())) {
      if (on.attached.get(n)) attached.push_back(n);
    }
  }
  w.number(attached.size());
  for (const NodeId n : attached) {
    w.number(n.index);
    w.number(on.attached.get(n)->size());
    for (const StreamId s : *on.attached.get(n)) w.number(s.index);
    w.number(on.synchronises_itself(n) ? 1 : 0);
  }
}

StreamAssignment read_assignment(PlanReader& r) {
  StreamAssignment on;
  for (std::size_t n = r.count("rules"); n > 0 && r.ok(); --n) on.rules.push_back(r.text());
  for (std::size_t n = r.count("reasons"); n > 0 && r.ok(); --n) on.reasons.push_back(r.text());
  for (std::size_t n = r.count("streams", 4); n > 0 && r.ok(); --n) {
    StreamInfo s;
    s.label = r.text();
    if (const std::uint32_t engine = r.index(kNoId, "an engine"); engine != 0) s.engine = EngineId(engine - 1);
    s.priority = r.signed_number();
    const std::uint32_t marks = r.index(8, "a stream's marks");
    s.attached = (marks & 1) != 0;
    s.assigned_by_pass = (marks & 2) != 0;
    s.user = (marks & 4) != 0;
    on.streams.push_back(std::move(s));
  }
  const std::size_t nodes = r.count("placements");
  on.placement.reserve(nodes);
  for (std::size_t i = 0; i < nodes && r.ok(); ++i) {
    const std::uint32_t stream = r.index(on.streams.size() + 1, "a placement");
    if (stream == 0) {
      on.placement.push_back(std::nullopt);
    } else {
      on.placement.push_back(Placement{StreamId(stream - 1), RuleId(r.index(on.rules.size(), "a rule"))});
    }
  }
  on.threads_per_op = r.index(kNoId, "threads an operator");
  for (std::size_t n = r.count("candidates", 11); n > 0 && r.ok(); --n) {
    Candidate c;
    c.streams = r.index(kNoId, "a candidate's streams");
    c.threads_per_op = r.index(kNoId, "a candidate's threads");
    c.span_us = r.real();
    c.pairs = r.number();
    on.considered.push_back(c);
  }
  if (r.index(2, "a mark") == 1) {
    Estimate e;
    e.span_us = r.real();
    e.single_stream_us = r.real();
    e.lower_bound_us = r.real();
    e.overlap = r.real();
    e.limited_by = r.text();
    e.unknown_costs = r.index(kNoId, "unknown costs");
    on.estimate = std::move(e);
  }
  on.clusters = r.index(kNoId, "clusters");
  on.skips_engines = r.index(2, "a mark") == 1;
  for (std::size_t n = r.count("nodes with attached streams", 4); n > 0 && r.ok(); --n) {
    const NodeId node(r.index(nodes, "a node with attached streams"));
    std::vector<StreamId> list;
    for (std::size_t m = r.count("attached streams"); m > 0 && r.ok(); --m) {
      list.push_back(StreamId(r.index(on.streams.size(), "an attached stream")));
    }
    if (r.ok()) on.attached.set(node, std::move(list));
    if (r.index(2, "a mark") == 1) on.self_synchronising.push_back(node);
  }
  return on;
}

// ---- sync

bool names_stream(PairReason reason) { return reason == PairReason::fork || reason == PairReason::join; }

void write(PlanWriter& w, const SyncPair& p) {
  w.number(p.from.index);
  w.number(p.to.index);
  w.number(static_cast<std::uint64_t>(p.reason));
  if (names_stream(p.reason)) w.number(p.stream.index);
}

SyncPair read_pair(PlanReader& r, std::size_t nodes) {
  SyncPair p;
  p.from = NodeId(r.index(nodes, "a pair's node"));
  p.to = NodeId(r.index(nodes, "a pair's node"));
  p.reason = static_cast<PairReason>(r.index(static_cast<std::uint64_t>(PairReason::merged) + 1, "a pair's reason"));
  if (names_stream(p.reason)) p.stream = StreamId(r.index(kNoId, "a pair's stream"));
  return p;
}

void write(PlanWriter& w, const SyncPlan& sync) {
  w.number(static_cast<std::uint64_t>(sync.mode));
  w.number(static_cast<std::uint64_t>(sync.kind));
  w.number(sync.compat ? 1 : 0);
  if (sync.compat) {
    for (const std::uint32_t n : {sync.compat->inserted, sync.compat->after_send, sync.compat->after_receive,
                                  sync.compat->after_activate, sync.compat->after_switch, sync.compat->added}) {
      w.number(n);
    }
  }
  w.number(sync.inserted);
  w.number(sync.kept.size());
  for (const SyncPair& p : sync.kept) write(w, p);
  w.number(sync.starts.size());
  for (const StartFact& f : sync.starts) {
    w.number(f.start.index);
    w.number(f.source.index);
    w.number(f.stream.index);
    w.number(f.ways_begin);
    w.number(f.ways);
  }
  w.number(sync.start_ways.size());
  for (const StartWay& way : sync.start_ways) {
    w.number(way.through.index);
    w.number(way.path_begin);
    w.number(way.path_length);
    w.number(way.idle ? std::uint64_t{way.idle->index} + 1 : 0);
  }
  w.number(sync.path_pool.size());
  for (const PairId p : sync.path_pool) {
    w.number(std::uint64_t{p.index & ~kStartStep} << 1 | ((p.index & kStartStep) != 0 ? 1 : 0));
  }
  w.number(sync.dropped.size());
  for (const DroppedPair& d : sync.dropped) {
    write(w, d.pair);
    w.number(d.path_begin);
    w.number(d.path_length);
  }
}

SyncPlan read_sync(PlanReader& r, std::size_t nodes) {
  SyncPlan sync;
  sync.mode = static_cast<SyncMode>(r.index(static_cast<std::uint64_t>(SyncMode::none) + 1, "a mode of reduction"));
  sync.kind = static_cast<EventKind>(r.index(2, "a kind of event"));
  if (r.index(2, "a mark") == 1) {
    CompatCounts c;
    c.inserted = r.index(kNoId, "a count");
    c.after_send = r.index(kNoId, "a count");
    c.after_receive = r.index(kNoId, "a count");
    c.after_activate = r.index(kNoId, "a count");
    c.after_switch = r.index(kNoId, "a count");
    c.added = r.index(kNoId, "a count");
    sync.compat = c;
  }
  sync.inserted = r.index(kNoId, "inserted pairs");
  for (std::size_t n = r.count("kept pairs", 3); n > 0 && r.ok(); --n) sync.kept.push_back(read_pair(r, nodes));
  for (std::size_t n = r.count("start facts", 5); n > 0 && r.ok(); --n) {
    StartFact f;
    f.start = NodeId(r.index(nodes, "a start's node"));
    f.source = NodeId(r.index(nodes, "a start's node"));
    f.stream = StreamId(r.index(kNoId, "a start's stream"));
    f.ways_begin = r.index(kNoId, "a start's ways");
    f.ways = r.index(kNoId, "a start's ways");
    sync.starts.push_back(f);
  }
  for (std::size_t n = r.count("ways of starts", 4); n > 0 && r.ok(); --n) {
    StartWay way;
    way.through = NodeId(r.index(nodes, "a way's node"));
    way.path_begin = r.index(kNoId, "a way's path");
    way.path_length = r.index(kNoId, "a way's path");
    if (const std::uint32_t idle = r.index(nodes + 1, "a way's node"); idle != 0) way.idle = NodeId(idle - 1);
    sync.start_ways.push_back(way);
  }
  for (std::size_t n = r.count("steps of paths"); n > 0 && r.ok(); --n) {
    const std::uint64_t step = r.number();
    const bool fact = (step & 1) != 0;
    if ((step >> 1) >= (fact ? sync.starts.size() : sync.kept.size())) {
      r.fail(fmt::format("a step of a path names {} {} of {}", fact ? "start" : "pair", step >> 1,
                         fact ? sync.starts.size() : sync.kept.size()));
      break;
    }
    sync.path_pool.push_back(PairId(static_cast<std::uint32_t>(step >> 1) | (fact ? kStartStep : 0u)));
  }
  for (const StartFact& f : sync.starts) {
    if (std::uint64_t{f.ways_begin} + f.ways > sync.start_ways.size()) r.fail("a start's ways lie behind their table");
  }
  for (const StartWay& way : sync.start_ways) {
    if (std::uint64_t{way.path_begin} + way.path_length > sync.path_pool.size()) r.fail("a way's path lies behind its table");
  }
  for (std::size_t n = r.count("dropped pairs", 5); n > 0 && r.ok(); --n) {
    DroppedPair d;
    d.pair = read_pair(r, nodes);
    d.path_begin = r.index(sync.path_pool.size() + 1, "a path's begin");
    d.path_length = r.index(sync.path_pool.size() - std::min<std::size_t>(d.path_begin, sync.path_pool.size()) + 1, "a path's length");
    sync.dropped.push_back(d);
  }
  return sync;
}

// ---- schedule

void write(PlanWriter& w, const Schedule& schedule) {
  w.number(schedule.logical_streams);
  w.number(schedule.event_count);
  w.number(static_cast<std::uint64_t>(schedule.event_kind));
  w.number(schedule.label_count);
  w.number(schedule.controls.size());
  for (const ControlTask& c : schedule.controls) {
    w.number(c.node.index);
    w.number(c.targets.size());
    for (const std::uint32_t t : c.targets) w.number(t);
  }
  w.number(schedule.splits.size());
  for (const SplitPoint& s : schedule.splits) {
    w.number(s.node.index);
    w.number(s.opened.index);
    w.text(s.reason);
  }
  w.number(schedule.streams.size());
  for (const PhysicalStream& s : schedule.streams) {
    w.number(s.logical.index);
    w.number((s.relay ? 1 : 0) | (s.huge ? 2 : 0));
    w.number(s.tasks.size());
    for (const Task& t : s.tasks) w.number(std::uint64_t{t.index} << 4 | static_cast<std::uint64_t>(t.kind));
  }
}

Schedule read_schedule(PlanReader& r, std::size_t nodes) {
  Schedule out;
  out.logical_streams = r.index(kNoId, "logical streams");
  // Later stages make a table of this size, so it may not exceed the tasks that could name events.
  out.event_count = r.index(kNoId, "events");
  std::uint64_t records = 0;
  out.event_kind = static_cast<EventKind>(r.index(2, "a kind of event"));
  out.label_count = r.index(kNoId, "labels");
  for (std::size_t n = r.count("control tasks", 2); n > 0 && r.ok(); --n) {
    ControlTask c;
    c.node = NodeId(r.index(nodes, "a control task's node"));
    for (std::size_t m = r.count("targets"); m > 0 && r.ok(); --m) c.targets.push_back(r.index(kNoId, "a target"));
    out.controls.push_back(std::move(c));
  }
  for (std::size_t n = r.count("split points", 3); n > 0 && r.ok(); --n) {
    SplitPoint s;
    s.node = NodeId(r.index(nodes, "a split point's node"));
    s.opened = PhysicalStreamId(r.index(kNoId, "a split point's stream"));
    s.reason = r.text();
    out.splits.push_back(std::move(s));
  }
  for (std::size_t n = r.count("physical streams", 3); n > 0 && r.ok(); --n) {
    PhysicalStream s;
    s.logical = StreamId(r.index(out.logical_streams, "a logical stream"));
    const std::uint32_t marks = r.index(4, "a stream's marks");
    s.relay = (marks & 1) != 0;
    s.huge = (marks & 2) != 0;
    const std::size_t tasks = r.count("tasks");
    s.tasks.reserve(tasks);
    for (std::size_t i = 0; i < tasks && r.ok(); ++i) {
      const std::uint64_t raw = r.number();
      const auto kind = static_cast<Task::Kind>(raw & 15);
      const std::uint64_t index = raw >> 4;
      const std::size_t named = Task{kind}.is_control()   ? out.controls.size()
                                : Task{kind}.names_node() ? nodes
                                                          : out.event_count;
      if (kind > Task::Kind::self_attached || index >= named) {
        r.fail(fmt::format("a task of kind {} names {} of {}", raw & 15, index, named));
        break;
      }
      if (kind == Task::Kind::record) ++records;
      s.tasks.push_back({kind, static_cast<std::uint32_t>(index)});
    }
    out.streams.push_back(std::move(s));
  }
  if (r.ok() && (out.event_count > records || out.logical_streams > out.streams.size())) {
    r.fail(fmt::format("{} events with {} records, {} logical streams with {} physical ones", out.event_count, records,
                       out.logical_streams, out.streams.size()));
  }
  return out;
}

// ---- memory

void write(PlanWriter& w, const MemoryPlan& memory) {
  w.number(memory.peak_bytes);
  w.number(memory.single_stream_bytes);
  w.number(memory.lower_bound_bytes);
  w.number(memory.buffers.size());
  for (const auto& b : memory.buffers) {
    w.number(b ? b->offset / 64 + 1 : 0);
    if (b) w.number(b->size);
  }
  w.number(memory.reuse.size());
  for (const Requirement& q : memory.reuse) {
    w.number(q.first.index);
    w.number(q.second.index);
    w.number(q.value.index);
  }
}

MemoryPlan read_memory(PlanReader& r, std::size_t nodes) {
  MemoryPlan memory;
  memory.peak_bytes = r.number();
  memory.single_stream_bytes = r.number();
  memory.lower_bound_bytes = r.number();
  const std::size_t values = r.count("buffers");
  memory.buffers.reserve(values);
  for (std::size_t i = 0; i < values && r.ok(); ++i) {
    const std::uint64_t place = r.number();
    if (place == 0) {
      memory.buffers.push_back(std::nullopt);
      continue;
    }
    if (place - 1 > std::uint64_t{1} << 56) r.fail(fmt::format("a buffer at 64 x {}", place - 1));
    memory.buffers.push_back(Buffer{(place - 1) * 64, r.number()});
  }
  for (std::size_t n = r.count("reuse orders", 3); n > 0 && r.ok(); --n) {
    Requirement q;
    q.first = NodeId(r.index(nodes, "a reuse order's node"));
    q.second = NodeId(r.index(nodes, "a reuse order's node"));
    q.kind = Requirement::Kind::buffer;
    q.value = ValueId(r.index(values, "a reuse order's value"));
    memory.reuse.push_back(q);
  }
  return memory;
}

// ---- head

void write_head(PlanWriter& w, const Plan& plan) {
  w.u64(plan.graph_hash);
  w.text(plan.model_path);
  w.number(plan.dims.size());
  for (const auto& [name, n] : plan.dims) {
    w.text(name);
    w.signed_number(n);
  }
}

void read_head(PlanReader& r, Plan& plan) {
  plan.graph_hash = r.u64();
  plan.model_path = r.text();
  for (std::size_t n = r.count("dimensions", 2); n > 0 && r.ok(); --n) {
    std::string name = r.text();
    plan.dims.push_back({std::move(name), r.signed_number()});
  }
}

constexpr std::string_view kSections[] = {"HEAD", "ASGN", "SYNC", "SCHD", "MEMO"};

Error bad_plan(const std::string& file, std::string_view what) {
  return Error{ErrorCode::bad_model, fmt::format("\"{}\" is no plan that can be used: {}", file, what)}.help(
      "compile the model again");
}

}  // namespace

std::string plan_bytes(const Plan& plan) {
  PlanWriter file;
  file.raw(kPlanMagic);
  file.u32(kPlanVersion);
  file.u32(static_cast<std::uint32_t>(std::size(kSections)));
  PlanWriter parts[std::size(kSections)];
  write_head(parts[0], plan);
  write(parts[1], plan.assignment);
  write(parts[2], plan.sync);
  write(parts[3], plan.schedule);
  write(parts[4], plan.memory);
  for (std::size_t i = 0; i < std::size(kSections); ++i) {
    file.raw(kSections[i]);
    file.u64(parts[i].bytes().size());
    file.raw(parts[i].bytes());
  }
  const std::uint64_t sum = plan_checksum(file.bytes());
  file.u64(sum);
  return file.bytes();
}

Result<Plan> parse_plan(std::string_view bytes, const std::string& file) {
  if (bytes.substr(0, kPlanMagic.size()) != kPlanMagic) return bad_plan(file, "it does not begin with MSTPLAN");
  PlanReader head(bytes.substr(kPlanMagic.size()));
  const std::uint32_t version = head.u32();
  const std::uint32_t sections = head.u32();
  if (head.ok() && version != kPlanVersion) {
    return bad_plan(file, fmt::format("it has version {}, this millstream reads version {}", version, kPlanVersion));
  }
  if (!head.ok() || bytes.size() < 24) return bad_plan(file, "the file is cut off");
  if (sections != std::size(kSections)) return bad_plan(file, fmt::format("{} sections instead of {}", sections, std::size(kSections)));
  const std::string_view summed = bytes.substr(0, bytes.size() - 8);
  if (PlanReader(bytes.substr(summed.size())).u64() != plan_checksum(summed)) {
    return bad_plan(file, "its checksum is wrong: it is cut off or damaged");
  }
  PlanReader body(summed.substr(16));
  std::string_view parts[std::size(kSections)];
  for (std::size_t i = 0; i < std::size(kSections); ++i) {
    const std::string_view name = body.raw(4, "a section's name");
    const std::uint64_t size = body.u64();
    parts[i] = body.raw(size, "a section");
    if (!body.ok()) return bad_plan(file, body.failed());
    if (name != kSections[i]) return bad_plan(file, fmt::format("section {} is not {}", i, kSections[i]));
  }
  if (!body.at_end()) return bad_plan(file, "there are bytes behind the last section");

  Plan plan;
  PlanReader readers[] = {PlanReader(parts[0]), PlanReader(parts[1]), PlanReader(parts[2]), PlanReader(parts[3]), PlanReader(parts[4])};
  for (std::size_t i = 0; i < std::size(kSections); ++i) {
    PlanReader& r = readers[i];
    const std::size_t nodes = plan.assignment.placement.size();
    if (i == 0) read_head(r, plan);
    if (i == 1) plan.assignment = read_assignment(r);
    if (i == 2) plan.sync = read_sync(r, nodes);
    if (i == 3) plan.schedule = read_schedule(r, nodes);
    if (i == 4) plan.memory = read_memory(r, nodes);
    if (r.ok() && !r.at_end()) r.fail("bytes are left over");
    if (!r.ok()) return bad_plan(file, fmt::format("section {}: {}", kSections[i], r.failed()));
  }
  return plan;
}

Result<void> write_plan(const std::string& path, const Plan& plan) { return write_bytes(path, plan_bytes(plan)); }

Result<Plan> read_plan(const std::string& path) {
  MST_TRY(const std::string bytes, read_bytes(path));
  return parse_plan(bytes, path);
}

}  // namespace millstream
