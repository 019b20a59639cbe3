// SPDX-License-Identifier: Apache-2.0
#include "millstream/report/explain.h"

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/activation.h"

namespace millstream {
namespace {

// Why a node waits, as one would say it.
std::string wait_text(const SyncPair& p, std::string_view stream, std::string_view from, std::string_view to) {
  switch (p.reason) {
    case PairReason::fork: return fmt::format("  attached   its part on stream {} starts when {} may start\n", p.stream.index, to);
    case PairReason::join: return fmt::format("             and has ended before what follows {} on {}\n", from, stream);
    case PairReason::exit: return fmt::format("  waits for  {} on {}, which closes a graph that this node follows\n", from, stream);
    case PairReason::entry: return fmt::format("  waits for  {} on {}, which opens the graph that this node is in\n", from, stream);
    case PairReason::loop: return fmt::format("  waits for  {} on {}, whose stream is started again after this\n", from, stream);
    case PairReason::split: return fmt::format("  waits for  {} on {}, the end of the piece before\n", from, stream);
    default: return fmt::format("  waits for  {} on {} ({} dependency)\n", from, stream, to_string(p.reason));
  }
}

// The event by which a piece waits for the end of the piece before; none when other waits imply it.
std::optional<std::uint32_t> cut_event(const Schedule& schedule, const SplitPoint& split) {
  std::optional<PhysicalStreamId> before;
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(split.opened.index)) {
    if (schedule.streams[s].logical == schedule.streams[split.opened].logical) before = s;
  }
  if (!before) return std::nullopt;
  const std::vector<Task>& ends = schedule.streams[*before].tasks;
  for (const Task& t : schedule.streams[split.opened].tasks) {
    if (t.kind != Task::Kind::wait) break;
    for (std::size_t i = ends.size(); i-- > 0 && ends[i].kind == Task::Kind::record;) {
      if (ends[i].index == t.index) return t.index;
    }
  }
  return std::nullopt;
}

std::string stream_text(const StreamAssignment& on, NodeId n) {
  const auto stream = on.stream_of(n);
  return stream ? fmt::format("stream {}", stream->index) : "no stream";
}

}  // namespace

Result<std::vector<NodeReasons>> explain(const ExplainInput& input, std::optional<NodeId> only) {
  const Graph& graph = input.graph;
  const StreamAssignment& on = input.on;
  MST_TRY(const Activation activation, plan_activation(graph, on));
  std::vector<NodeReasons> out;
  IdVec<NodeId, std::uint32_t> place(graph.node_count());
  for (const NodeId n : graph.order()) {
    if (only && n != *only) continue;
    place[n] = static_cast<std::uint32_t>(out.size());
    NodeReasons& node = out.emplace_back();
    node.node = n;
    const auto& placement = on.placement[n];
    node.reason = "it emits no task";
    if (!placement) continue;
    node.stream = placement->stream;
    node.rule = on.rules[placement->decided_by.index];
    node.reason = on.reasons[placement->decided_by.index];
    if (placement->stream.index < activation.started_by.size()) node.stream_started_by = activation.started_by[placement->stream];
  }
  const auto of = [&](NodeId n) -> NodeReasons* { return only && n != *only ? nullptr : &out[place[n]]; };
  for (const SplitPoint& p : input.schedule.splits) {
    if (NodeReasons* const node = of(p.node)) node->cuts.push_back({p.opened, p.reason, cut_event(input.schedule, p)});
  }
  for (std::uint32_t i = 0; i < input.sync.kept.size(); ++i) {
    if (NodeReasons* const node = of(input.sync.kept[i].to)) node->waits.push_back(i);
  }
  for (std::uint32_t i = 0; i < input.sync.dropped.size(); ++i) {
    if (NodeReasons* const node = of(input.sync.dropped[i].pair.to)) node->dropped.push_back(i);
  }
  return out;
}

std::string print(const ExplainInput& input, const NodeReasons& node) {
  const Graph& graph = input.graph;
  const StreamAssignment& on = input.on;
  const auto name = [&](NodeId n) { return quote_name(graph.name(n)); };
  std::string text = fmt::format("{} ({}) runs on {}", name(node.node), graph.type(node.node), stream_text(on, node.node));
  if (node.stream && !on.streams[*node.stream].label.empty()) {
    const StreamInfo& info = on.streams[*node.stream];
    text += fmt::format(", the stream of {}label \"{}\"", info.user ? "user " : "", info.label);
    if (info.priority != 0) text += fmt::format(" (priority {})", info.priority);
  }
  text += fmt::format("\n  rule       {}: {}\n", node.rule.empty() ? "-" : node.rule, node.reason);
  for (const std::string& d : node.decisions) text += fmt::format("             {}\n", d);
  if (!node.stream_started_by.empty()) {
    std::string starters;
    for (const NodeId by : node.stream_started_by) starters += fmt::format("{}{}", starters.empty() ? "" : " or ", name(by));
    text += fmt::format("  started    stream {} does not begin with the model: {} starts it\n", node.stream->index, starters);
  }
  for (const CutReason& cut : node.cuts) {
    text += fmt::format("  split      continues on physical stream {}: {}\n", cut.opened.index, cut.reason);
    text += cut.event ? fmt::format("             and waits there for the end of the piece before, by event {}\n", *cut.event)
                      : std::string("             and needs no wait for the end of the piece before: other waits imply it\n");
  }
  for (const std::uint32_t i : node.waits) {
    const SyncPair& p = input.sync.kept[i];
    text += wait_text(p, stream_text(on, p.from), name(p.from), name(p.to));
  }
  for (const std::uint32_t i : node.dropped) {
    const DroppedPair& d = input.sync.dropped[i];
    text += fmt::format("  no wait for {} on {}: implied by {}\n", name(d.pair.from), stream_text(on, d.pair.from), print_path(graph, on, input.sync, d));
  }
  return text;
}

}  // namespace millstream
