// SPDX-License-Identifier: Apache-2.0
#include "millstream/exec/control_values.h"

#include <algorithm>

#include <fmt/format.h>

#include "millstream/exec/control_flow.h"
#include "millstream/schedule/control_types.h"

namespace millstream {
namespace {

Error of_node(const Graph& graph, NodeId n, ErrorCode code, std::string_view what) {
  return Error{code, fmt::format("{} \"{}\": {}", graph.type(n), graph.name(n), what)};
}

Tensor counter_at_zero() {
  Tensor t(DType::i64, {});
  t.as_mutable<std::int64_t>()[0] = 0;
  return t;
}

Tensor yes() {
  Tensor t(DType::boolean, {});
  t.as_mutable<std::uint8_t>()[0] = 1;
  return t;
}

std::int64_t at(const std::vector<std::int64_t>& list, std::size_t k) { return k < list.size() ? list[k] : 0; }

// What a switch or a branch reads: a bool or a whole number.
Result<std::int64_t> number(const Graph& graph, NodeId n, const Tensor& t) {
  if (t.elements() == 1) {
    if (t.dtype() == DType::boolean) return std::int64_t{t.as<std::uint8_t>()[0] != 0};
    if (t.dtype() == DType::i64) return t.as<std::int64_t>()[0];
    if (t.dtype() == DType::i32) return std::int64_t{t.as<std::int32_t>()[0]};
  }
  return of_node(graph, n, ErrorCode::kernel, fmt::format("goes by {}, needs one bool, i32 or i64", to_string(t.desc())));
}

}  // namespace

/// Reads off the graph what `flatten` put into it.
class ControlValues::Builder {
 public:
  Builder(const Graph& graph, ControlValues& out) : graph_(graph), out_(out) {}

  Result<void> run() {
    out_.slots_ = graph_.value_count();
    collect();
    for (auto& [owner, parts] : scopes_) {
      out_.owners_[owner] = true;
      const std::string_view type = graph_.type(owner);
      if (type == "PartitionedCall") {
        MST_TRY_VOID(call(owner, parts));
        continue;
      }
      for (const Part& part : parts) {
        if (!part.activated) {
          return of_node(graph_, owner, ErrorCode::control_flow, "its bodies are of unknown shapes or another scheduler's, which no back-end here has")
              .help("compile with --strategy auto, whose If, Loop and Scan are driven by the host");
        }
      }
      MST_TRY_VOID(type == "If" || type == "Case" ? branches(owner, parts) : loop(owner, parts));
    }
    return {};
  }

 private:
  struct Part {  // one scope
    std::vector<NodeId> data;
    std::optional<NodeId> output, decides;
    bool activated = false;
  };

  Error missing(NodeId owner, std::string_view what) const {
    return of_node(graph_, owner, ErrorCode::control_flow, fmt::format("its scopes have no {}", what));
  }

  void collect() {
    std::map<ScopeId, Part*> part_of;
    for (const ScopeId s : graph_.scopes()) {
      if (const auto owner = graph_.scope(s).parent_node) scopes_[*owner].emplace_back();
    }
    std::map<NodeId, std::size_t> next;
    for (const ScopeId s : graph_.scopes()) {
      if (const auto owner = graph_.scope(s).parent_node) part_of[s] = &scopes_[*owner][next[*owner]++];
    }
    for (const NodeId n : graph_.nodes()) {
      const auto found = part_of.find(graph_.scope_of(n));
      if (found == part_of.end()) continue;
      Part& part = *found->second;
      const std::string_view type = graph_.type(n);
      const auto& roles = graph_.annotations().roles.get(n);
      if (type == "Data") part.data.push_back(n);
      if (type == "NetOutput") part.output = n;
      if (type == "LabelSwitch") part.decides = n;
      if (roles && roles->first_active) part.activated = true;
    }
    for (const ControlEdge& e : graph_.control_edges()) {
      if (graph_.type(e.from) != "NetOutput" || graph_.scope_of(e.from) != graph_.scope_of(e.to)) continue;
      const std::string_view type = graph_.type(e.to);
      if (type == "LabelSet" || type == "LabelGoto" || type == "LabelGotoEx") closing_.insert({e.from, e.to});
    }
  }

  std::optional<ValueId> input(NodeId n, std::size_t i) const {
    const auto inputs = graph_.inputs(n);
    return i < inputs.size() ? inputs[i].get() : std::nullopt;
  }
  std::size_t index(NodeId data) const { return static_cast<std::size_t>(graph_.attrs(data).get_int("index", 0)); }

  // A body's inputs are its owner's from `first` on.
  Result<void> show_inputs(NodeId owner, const Part& part, std::size_t first) {
    for (const NodeId d : part.data) {
      const auto v = input(owner, first + index(d));
      if (!v) return of_node(graph_, d, ErrorCode::control_flow, fmt::format("shows input {} of \"{}\", which it has not", first + index(d), graph_.name(owner)));
      out_.from_[graph_.outputs(d)[0]] = *v;
    }
    return {};
  }

  Result<ValueId> result(NodeId owner, const Part& part, std::size_t i) const {
    if (!part.output) return missing(owner, "NetOutput");
    const auto v = input(*part.output, i);
    if (!v) return of_node(graph_, *part.output, ErrorCode::control_flow, fmt::format("has no input {}, which \"{}\" gives on", i, graph_.name(owner)));
    return *v;
  }

  Result<void> call(NodeId owner, const std::vector<Part>& parts) {
    MST_TRY_VOID(show_inputs(owner, parts[0], 0));
    for (std::size_t i = 0; i < graph_.outputs(owner).size(); ++i) {
      MST_TRY(out_.from_[graph_.outputs(owner)[i]], result(owner, parts[0], i));
    }
    return {};
  }

  Result<NodeId> closing(NodeId owner, const Part& part) const {
    const auto found = part.output ? closing_.find(*part.output) : closing_.end();
    if (found == closing_.end()) return missing(owner, "label or jump behind their NetOutput");
    return found->second;
  }

  Result<void> branches(NodeId owner, const std::vector<Part>& parts) {
    for (const ValueId v : graph_.outputs(owner)) out_.made_[v] = true;
    for (const Part& part : parts) {
      MST_TRY_VOID(show_inputs(owner, part, 1));
      Step step;
      step.owner = owner;
      for (std::size_t i = 0; i < graph_.outputs(owner).size(); ++i) {
        MST_TRY(const ValueId v, result(owner, part, i));
        step.moves.push_back({v, graph_.outputs(owner)[i]});
      }
      MST_TRY(const NodeId end, closing(owner, part));
      out_.steps_[end] = std::move(step);
    }
    return {};
  }

  Result<void> loop(NodeId owner, const std::vector<Part>& parts) {
    const std::string_view type = graph_.type(owner);
    if (parts.size() != 2 || !parts[0].decides) return missing(owner, "condition with a LabelSwitch");
    const Part& cond = parts[0];
    const Part& body = parts[1];
    const std::size_t inputs = graph_.inputs(owner).size(), outputs = graph_.outputs(owner).size();
    const std::size_t scanned = type == "Scan" ? static_cast<std::size_t>(graph_.attrs(owner).get_int("num_scan_inputs", 0)) : 0;
    const std::size_t steers = type == "Loop" ? 2 : type == "For" ? 3 : 0;  // inputs that are not carried
    const std::size_t carried = inputs - steers - scanned;
    const std::size_t own = type == "Loop" ? 2 : type == "While" ? 0 : 1;   // counter and condition
    Loop loop;
    loop.owner = owner;
    loop.carried = carried;
    for (std::size_t i = 0; i < own + carried; ++i) loop.state.push_back(ValueId(static_cast<std::uint32_t>(out_.slots_++)));
    if (type == "For") {
      loop.initial.push_back({input(owner, 0), {}});
      loop.step = input(owner, 2);
    } else if (own != 0) {
      loop.initial.push_back({std::nullopt, counter_at_zero()});
    }
    if (type == "Loop") {
      loop.initial.push_back({input(owner, 1), yes()});
      loop.trips = input(owner, 0);
      loop.condition = 1;
      loop.asks = input(owner, 1) || !loop.trips;
    }
    for (std::size_t i = 0; i < carried; ++i) {
      const auto v = input(owner, steers + i);
      if (!v) return of_node(graph_, owner, ErrorCode::control_flow, fmt::format("input {}, which it carries, is left out", steers + i));
      loop.initial.push_back({v, {}});
    }
    for (std::size_t i = 0; i < own + carried; ++i) {
      MST_TRY(const ValueId v, result(owner, body, i));
      loop.next.push_back(v);
    }
    for (std::size_t k = 0; k < scanned; ++k) {
      const auto v = input(owner, carried + k);
      if (!v) return of_node(graph_, owner, ErrorCode::control_flow, fmt::format("input {}, which it scans, is left out", carried + k));
      loop.scanned.push_back({*v, ValueId(static_cast<std::uint32_t>(out_.slots_++)), at(graph_.attrs(owner).get_ints("scan_input_axes"), k),
                              at(graph_.attrs(owner).get_ints("scan_input_directions"), k) == 1});
    }
    for (std::size_t i = 0; i < outputs; ++i) {
      const ValueId v = graph_.outputs(owner)[i];
      if (i < carried) {
        out_.from_[v] = loop.state[own + i];
        continue;
      }
      const std::size_t k = i - carried;
      MST_TRY(const ValueId part, result(owner, body, own + i));
      out_.made_[v] = true;
      loop.stacked.push_back({part, v, graph_.desc(part), at(graph_.attrs(owner).get_ints("scan_output_axes"), k),
                              at(graph_.attrs(owner).get_ints("scan_output_directions"), k) == 1, {}, 0});
    }
    // What the condition reads: all that a While carries, else the counter, and what the body said.
    const bool counted = type != "Loop" || input(owner, 0).has_value();
    for (const NodeId d : cond.data) {
      MST_TRY_VOID(show(loop, d, type == "Loop" && !counted ? 1 : index(d)));
    }
    for (const NodeId d : body.data) {
      const std::size_t i = index(d);
      if (type == "Scan" && i >= carried && i < carried + scanned) {
        show_slot(d, loop.scanned[i - carried].slot);
      } else {
        MST_TRY_VOID(show(loop, d, type != "Scan" ? i : i == carried + scanned ? 0 : i + 1));
      }
    }
    const std::size_t number = out_.loops_.size();
    MST_TRY(const NodeId back, closing(owner, body));
    std::optional<NodeId> first;
    for (const ControlEdge& e : graph_.loop_back_edges()) {
      if (e.from == back) first = e.to;
    }
    if (!first) return missing(owner, "way back to their condition");
    const auto step = [&](At when) {
      Step s;
      s.at = when;
      s.loop = number;
      s.owner = owner;
      return s;
    };
    out_.steps_[*first] = step(At::loop_start);
    out_.steps_[*cond.decides] = step(At::loop_test);
    out_.steps_[back] = step(At::loop_turn);
    out_.loops_.push_back(std::move(loop));
    return {};
  }

  void show_slot(NodeId data, ValueId slot) {
    out_.from_[graph_.outputs(data)[0]] = slot;
    out_.shown_[slot].push_back(graph_.outputs(data)[0]);
  }

  Result<void> show(const Loop& loop, NodeId data, std::size_t i) {
    if (i >= loop.state.size()) {
      return of_node(graph_, data, ErrorCode::control_flow, fmt::format("shows value {} that \"{}\" carries, which it has not", i, graph_.name(loop.owner)));
    }
    show_slot(data, loop.state[i]);
    return {};
  }

  const Graph& graph_;
  ControlValues& out_;
  std::map<NodeId, std::vector<Part>> scopes_;
  std::map<NodeId, NodeId> closing_;  // by NetOutput
};

Result<ControlValues> ControlValues::of(const Graph& graph, std::uint64_t max_bytes) {
  ControlValues out;
  out.max_bytes_ = max_bytes;
  MST_TRY_VOID(Builder(graph, out).run());
  return out;
}

ValueId ControlValues::slot(ValueId v) const {
  for (auto found = from_.find(v); found != from_.end(); found = from_.find(v)) v = found->second;
  return v;
}

Result<void> ControlValues::check_state(const Graph& graph, const Loop& loop, const TensorTable& table) const {
  const auto check = [&](ValueId slot) -> Result<void> {
    const auto shown = shown_.find(slot);
    if (shown == shown_.end()) return {};
    for (const ValueId v : shown->second) {
      if (fits(graph.desc(v), table[slot])) continue;
      return of_node(graph, loop.owner, ErrorCode::shape, fmt::format("\"{}\" is {}, the body wants {}", graph.name(v), to_string(table[slot].desc()),
                                                                      to_string(graph.desc(v))));
    }
    return {};
  };
  for (const ValueId slot : loop.state) MST_TRY_VOID(check(slot));
  return {};
}

// The counter and the condition take the rank that the body declares.
Result<void> ControlValues::settle_own(const Graph& graph, const Loop& loop, bool first, TensorTable& table) const {
  const std::size_t own = loop.state.size() - loop.carried;
  for (std::size_t i = 0; i < own; ++i) {
    Tensor& t = table[loop.state[i]];
    if (i == loop.condition && (t.dtype() != DType::boolean || t.elements() != 1)) {
      return of_node(graph, loop.owner, ErrorCode::kernel, fmt::format("its {}condition is {}, needs one bool", first ? "" : "body's ", to_string(t.desc())));
    }
    const auto shown = shown_.find(loop.state[i]);
    if (t.elements() != 1 || shown == shown_.end()) continue;
    const TensorDesc& want = graph.desc(shown->second[0]);
    if (want.elements() == 1 && want.shape->size() != t.shape().size()) t = t.reshaped(want.dims());
  }
  return {};
}

Result<void> ControlValues::start(const Graph& graph, Loop& loop, TensorTable& table) {
  loop.turn = 0;
  for (Stacked& s : loop.stacked) {
    s.turns.clear();
    s.bytes = 0;
  }
  for (std::size_t i = 0; i < loop.state.size(); ++i) {
    table[loop.state[i]] = loop.initial[i].value ? table[slot(*loop.initial[i].value)] : loop.initial[i].constant;
  }
  if (loop.trips) {
    const Tensor& t = table[slot(*loop.trips)];
    if (t.dtype() != DType::i64 || t.elements() != 1) {
      return of_node(graph, loop.owner, ErrorCode::kernel, fmt::format("its trip count is {}, needs one i64", to_string(t.desc())));
    }
  }
  if (loop.step) {
    MST_TRY(const std::int64_t step, number(graph, loop.owner, table[slot(*loop.step)]));
    // Its condition compares the way a constant step goes, and upwards otherwise.
    if (step == 0 || (step < 0 && graph.constant(*loop.step) == nullptr)) {
      return of_node(graph, loop.owner, ErrorCode::kernel, fmt::format("its step is {}, needs {}", step, step == 0 ? "another than 0" : "to be a constant where it is below 0"));
    }
  }
  MST_TRY_VOID(settle_own(graph, loop, true, table));
  std::int64_t turns = 0;
  for (std::size_t k = 0; k < loop.scanned.size(); ++k) {
    const Tensor& t = table[slot(loop.scanned[k].from)];
    MST_TRY(const std::size_t axis, scan_axis(t, loop.scanned[k].axis, k, graph.name(loop.owner)));
    if (k > 0 && t.shape()[axis] != turns) {
      return of_node(graph, loop.owner, ErrorCode::kernel, fmt::format("scan inputs are {} and {} long", turns, t.shape()[axis]));
    }
    turns = t.shape()[axis];
  }
  return check_state(graph, loop, table);
}

Result<void> ControlValues::test(const Graph& graph, Loop& loop, bool goes_on, TensorTable& table) {
  if (goes_on) {
    for (std::size_t k = 0; k < loop.scanned.size(); ++k) {
      const Scanned& s = loop.scanned[k];
      const Tensor& from = table[slot(s.from)];
      MST_TRY(const std::size_t axis, scan_axis(from, s.axis, k, graph.name(loop.owner)));
      table[s.slot] = row_of(from, axis, s.backwards ? from.shape()[axis] - 1 - loop.turn : loop.turn);
    }
    return {};
  }
  for (Stacked& s : loop.stacked) {
    MST_TRY(table[s.output], stack(s.turns, s.desc, s.axis, s.backwards, graph.name(loop.owner)));
    s.turns.clear();
  }
  for (const ValueId v : graph.outputs(loop.owner)) {
    const Tensor& t = table[slot(v)];
    if (graph.name(v).empty() || fits(graph.desc(v), t)) continue;
    return of_node(graph, loop.owner, ErrorCode::shape, fmt::format("output \"{}\" is {}, the model declares {}", graph.name(v), to_string(t.desc()),
                                                                    to_string(graph.desc(v))));
  }
  return {};
}

Result<void> ControlValues::turn(const Graph& graph, Loop& loop, TensorTable& table) {
  // All are read before any is written: a body may hand its inputs on in another order.
  std::vector<Tensor> next;
  for (const ValueId v : loop.next) next.push_back(table[slot(v)]);
  for (Stacked& s : loop.stacked) {
    s.turns.push_back(table[slot(s.part)]);
    s.bytes += s.turns.back().byte_size();
    if (s.bytes <= max_bytes_) continue;
    return of_node(graph, loop.owner, ErrorCode::memory_limit, fmt::format("output \"{}\" takes {} bytes after turn {}, allowed are {}", graph.name(s.output), s.bytes,
                                                                           loop.turn + 1, max_bytes_));
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (i != loop.condition || loop.asks) table[loop.state[i]] = std::move(next[i]);
  }
  ++loop.turn;
  MST_TRY_VOID(settle_own(graph, loop, false, table));
  return check_state(graph, loop, table);
}

Result<std::uint32_t> ControlValues::steer(const Graph& graph, NodeId n, TensorTable& table) {
  const auto inputs = graph.inputs(n);
  const auto found = steps_.find(n);
  if (found != steps_.end() && found->second.at != At::loop_test) {
    Step& step = found->second;
    if (step.at == At::loop_start) MST_TRY_VOID(start(graph, loops_[step.loop], table));
    if (step.at == At::loop_turn) MST_TRY_VOID(turn(graph, loops_[step.loop], table));
    for (const auto& [from, to] : step.moves) {
      const Tensor& t = table[slot(from)];
      if (!graph.name(to).empty() && !fits(graph.desc(to), t)) {
        return of_node(graph, step.owner, ErrorCode::shape, fmt::format("output \"{}\" is {}, the model declares {}", graph.name(to),
                                                                        to_string(t.desc()), to_string(graph.desc(to))));
      }
      table[to] = t;
    }
    return std::uint32_t{0};
  }
  if (inputs.empty()) return std::uint32_t{0};
  const auto v = inputs[0].get();
  if (!v) return of_node(graph, n, ErrorCode::control_flow, "has no input that decides");
  MST_TRY(const std::int64_t value, number(graph, n, table[slot(*v)]));
  if (found != steps_.end()) MST_TRY_VOID(test(graph, loops_[found->second.loop], value != 0, table));
  const std::string_view type = graph.type(n);
  if (type == "LabelSwitch") return std::uint32_t{value != 0};
  if (type == "StreamSwitch") {
    const auto& roles = graph.annotations().roles.get(n);
    return std::uint32_t{(value != 0) == (roles && roles->true_branch)};
  }
  // Below 0 and beyond the last: the last.
  constexpr std::int64_t kMost = 0x7fffffff;
  return static_cast<std::uint32_t>(value < 0 || value > kMost ? kMost : value);
}

}  // namespace millstream
