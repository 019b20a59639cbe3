// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/sync/sync_plan.h"

namespace millstream {
namespace {

class PlanPrinter {
 public:
  PlanPrinter(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan) : graph_(graph), on_(on), plan_(plan) {}

  std::string path_of(const DroppedPair& d) {
    path(d.pair.from, d.path_begin, d.path_length, d.pair.to);
    return std::move(out_);
  }

  std::string run() {
    for (const SyncPair& p : plan_.kept) {
      out_ += fmt::format("kept    {}  ({}, stream {})\n", arrow(p), to_string(p.reason), streams(p));
    }
    for (const DroppedPair& d : plan_.dropped) {
      out_ += fmt::format("dropped {}  ({}, stream {}): implied by ", arrow(d.pair), to_string(d.pair.reason), streams(d.pair));
      path(d.pair.from, d.path_begin, d.path_length, d.pair.to);
      out_ += '\n';
    }
    const std::uint32_t given = given_by_activations(plan_);
    const bool least = plan_.mode == SyncMode::exact;
    const std::size_t idle = least ? plan_.inserted - plan_.kept.size() - plan_.dropped.size() : 0;
    out_ += fmt::format("{} pairs inserted, {} kept, {} dropped{}{}\n", plan_.inserted - given, plan_.kept.size(), plan_.dropped.size() - given,
                        idle == 0 ? "" : fmt::format(", {} that no task needs", idle), given == 0 ? "" : fmt::format("; activations give {} more", given));
    if (plan_.compat) {
      const CompatCounts& c = *plan_.compat;
      out_ += fmt::format("compat: {} inserted, {} after send, {} after receive, {} after activate, {} after switch, {} added: {} kept\n",
                          c.inserted, c.after_send, c.after_receive, c.after_activate, c.after_switch, c.added, c.kept());
    }
    return std::move(out_);
  }

 private:
  std::string name(NodeId n) const { return quote_name(graph_.name(n)); }
  std::string arrow(const SyncPair& p) const {
    if (p.reason == PairReason::fork) return fmt::format("{} -> +{}", name(p.from), name(p.to));
    if (p.reason == PairReason::join) return fmt::format("+{} -> {}", name(p.from), name(p.to));
    return fmt::format("{} -> {}", name(p.from), name(p.to));
  }
  std::string streams(const SyncPair& p) const {
    const auto text = [](std::optional<StreamId> s) { return s ? fmt::format("{}", s->index) : std::string("-"); };
    std::string from = text(on_.stream_of(p.from)), to = text(on_.stream_of(p.to));
    if (p.reason == PairReason::fork) to = text(p.stream);
    if (p.reason == PairReason::join) from = text(p.stream);
    return from + " -> " + to;
  }

  // Two dots for the order of a stream, an arrow for a kept pair, a double one for a start; + marks a node's part
  // on an attached stream.
  void path(NodeId at, std::uint32_t begin, std::uint32_t length, NodeId end, bool part = false) {
    const auto word = [&](NodeId n, bool p) { return (p ? "+" : "") + name(n); };
    const auto along_stream = [&](NodeId next, bool p) {
      if (next != at || p != part) out_ += " .. " + word(next, p);
    };
    out_ += word(at, part);
    for (std::uint32_t i = begin; i < begin + length; ++i) {
      const std::uint32_t step = plan_.path_pool[i].index;
      if ((step & kStartStep) != 0) {
        const StartFact& fact = plan_.starts[step & ~kStartStep];
        along_stream(fact.source, attached(fact.stream));
        start(fact);
        at = fact.start;
        part = false;
        continue;
      }
      const SyncPair& p = plan_.kept[step];
      along_stream(p.from, p.reason == PairReason::join);
      part = p.reason == PairReason::fork;
      out_ += " -> " + word(p.to, part);
      at = p.to;
    }
    along_stream(end, false);
  }

  void start(const StartFact& fact) {
    const bool several = fact.ways > 1;
    if (several) out_ += " {";
    for (std::uint32_t w = fact.ways_begin; w < fact.ways_begin + fact.ways; ++w) {
      const StartWay& way = plan_.start_ways[w];
      if (several) out_ += w == fact.ways_begin ? "" : " | ";
      if (way.idle) {
        out_ += fmt::format("no {} behind {}", name(*way.idle), name(way.through));
      } else if (several) {
        path(fact.source, way.path_begin, way.path_length, way.through, attached(fact.stream));
      } else {
        // The path goes on from where it stands.
        std::string before = std::move(out_);
        out_.clear();
        path(fact.source, way.path_begin, way.path_length, way.through, attached(fact.stream));
        const std::string first = (attached(fact.stream) ? "+" : "") + name(fact.source);
        out_ = before + out_.substr(first.size());
      }
    }
    if (several) out_ += "}";
    out_ += " => " + name(fact.start);
  }

  bool attached(StreamId s) const { return s.index < on_.streams.size() && on_.streams[s].attached; }

  const Graph& graph_;
  const StreamAssignment& on_;
  const SyncPlan& plan_;
  std::string out_;
};

}  // namespace

std::string print(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan) {
  return PlanPrinter(graph, on, plan).run();
}

std::string print_path(const Graph& graph, const StreamAssignment& on, const SyncPlan& plan, const DroppedPair& dropped) {
  return PlanPrinter(graph, on, plan).path_of(dropped);
}

}  // namespace millstream
