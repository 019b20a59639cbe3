// SPDX-License-Identifier: Apache-2.0
// What If, Case, While, For, Loop, Scan and PartitionedCall add to the scopes of their bodies.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "millstream/graph/dependencies.h"
#include "millstream/graph/flat_builder.h"

namespace millstream {

/// A node with bodies while they are lowered.
struct FlatBuilder::Owner {
  Level& level;  // the scope it stands in
  NodeId node;   // in the source
  NodeId flat;
  std::string name;
  std::string_view type;
  std::vector<InputRef> inputs;
  std::vector<NodeId> order;  // nodes of its scopes so far, as they run

  const Graph& source() const { return level.source; }
  Error wrong(std::string what) const { return Error{ErrorCode::control_flow, fmt::format("{} \"{}\" {}", type, name, what)}; }
  const Body* body(std::string_view attribute) const {
    for (const Body& b : source().bodies(node)) {
      if (b.attribute == attribute) return &b;
    }
    return nullptr;
  }
  const Graph& graph(const Body& b) const { return source().body(b.body); }
  std::string inside(std::string_view attribute, std::string_view what) const { return fmt::format("{}/{}/{}", name, attribute, what); }
};

/// What stands between the opening and the closing node of a scope.
struct FlatBuilder::Frame {
  ScopeId scope;
  std::optional<NodeId> head;   // the last opening node
  std::vector<NodeId> roots;    // start when the head has run
  std::vector<NodeId> leaves;   // the closing node comes after them
};

namespace {

// Hold a value and wait for nothing: no activation has to come before them.
bool holds_data(std::string_view type) {
  for (const std::string_view t : {"Data", "AippData", "Const", "Constant", "Variable", "FileConstant"}) {
    if (type == t) return true;
  }
  return false;
}

Attrs label_index(std::int64_t label) {
  Attrs attrs;
  attrs.set("label_index", label);
  return attrs;
}

Attrs label_list(std::vector<std::int64_t> labels) {
  Attrs attrs;
  attrs.set("label_list", std::move(labels));
  return attrs;
}

Roles with(bool Roles::*role) {
  Roles roles;
  roles.*role = true;
  return roles;
}

std::optional<std::int64_t> constant_int(const Graph& graph, const InputRef& in) {
  const auto v = in.get();
  const Tensor* t = v ? graph.constant(*v) : nullptr;
  if (t == nullptr || t->elements() != 1) return std::nullopt;
  if (t->dtype() == DType::i64) return t->as<std::int64_t>()[0];
  if (t->dtype() == DType::i32) return t->as<std::int32_t>()[0];
  return std::nullopt;
}

// The counter and the condition of a Loop, which the body may declare with one element of any rank.
TensorDesc one_element(const TensorDesc& declared, DType type) {
  return {type, declared.elements() == 1 ? declared.shape : std::vector<Dim>{}};
}

// The shape of an operation on one element and `b`, which may have any shape.
std::optional<std::vector<Dim>> joined(const TensorDesc& one, const TensorDesc& b) {
  if (!one.shape || !b.shape) return std::nullopt;
  std::vector<Dim> out = *b.shape;
  if (out.size() < one.shape->size()) out.insert(out.begin(), one.shape->begin(), one.shape->end() - static_cast<std::ptrdiff_t>(out.size()));
  return out;
}

Tensor scalar(DType type, std::int64_t value) {
  Tensor t(type, {});
  if (type == DType::i32) {
    t.as_mutable<std::int32_t>()[0] = static_cast<std::int32_t>(value);
  } else {
    t.as_mutable<std::int64_t>()[0] = value;
  }
  return t;
}

}  // namespace

Result<std::vector<NodeId>> FlatBuilder::lower_bodies(Level& level, NodeId n, NodeId flat) {
  const Graph& g = level.source;
  const auto inputs = graph_.inputs(flat);
  Owner owner{level, n, flat, std::string(graph_.name(flat)), g.type(n), {inputs.begin(), inputs.end()}, {}};

  // What bodies read from outside is there before the owner runs, and so before all that it starts.
  std::vector<NodeId> before;
  for (const ValueId v : g.captures(n)) {
    if (!level.values[v]) continue;  // add_values names it
    if (const auto p = graph_.producer(*level.values[v]);
        p && graph_.scope_of(*p) == level.scope && !(holds_data(graph_.type(*p)) && graph_.inputs(*p).empty())) {
      before.push_back(*p);
    }
  }
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  for (const InputRef in : owner.inputs) {
    const auto v = in.get();
    const auto p = v ? graph_.producer(*v) : std::nullopt;
    if (p) before.erase(std::remove(before.begin(), before.end(), *p), before.end());
  }
  for (const NodeId p : before) control_.push_back({p, flat});

  bool apart = graph_.scope(level.scope).dynamic || graph_.annotations().thread_scope.get(flat).has_value();
  for (const Body& b : g.bodies(n)) apart = apart || g.body(b.body).dynamic();
  Result<void> done;
  if (apart) {
    done = keep_apart(owner);
  } else if (owner.type == "If" || owner.type == "Case") {
    done = lower_branches(owner);
  } else if (owner.type == "While") {
    done = lower_while(owner);
  } else if (owner.type == "For" || owner.type == "Loop" || owner.type == "Scan") {
    done = lower_counted(owner);
  } else if (owner.type == "PartitionedCall") {
    done = lower_call(owner);
  } else {
    done = owner.wrong("has a nested graph; operators that may are If, Case, While, For, Loop, Scan and PartitionedCall");
  }
  if (!done.ok()) return std::move(done).error();
  return std::move(owner.order);
}

ScopeId FlatBuilder::add_scope(const Owner& owner, std::string_view attribute, bool dynamic) {
  return graph_.add_scope(Scope{fmt::format("{}/{}", owner.name, attribute), owner.flat, owner.level.scope, dynamic});
}

NodeId FlatBuilder::add_label_node(Owner& owner, ScopeId scope, std::string_view type, std::string name,
                                   std::vector<InputRef> inputs, Attrs attrs, Roles roles) {
  const NodeId n = add_node(scope, type, std::move(name), std::move(inputs), {}, std::move(attrs));
  roles.rts_label = true;
  graph_.annotations().roles.set(n, roles);
  owner.order.push_back(n);
  return n;
}

// LabelSet => StreamActive, behind what already opens the frame.
void FlatBuilder::open_frame(Owner& owner, Frame& frame, const std::string& label_name, std::optional<std::int64_t> label,
                             const std::string& active_name) {
  const auto append = [&](NodeId n) {
    if (frame.head) control_.push_back({*frame.head, n});
    frame.head = n;
  };
  if (label) append(add_label_node(owner, frame.scope, "LabelSet", label_name, {}, label_index(*label)));
  append(add_label_node(owner, frame.scope, "StreamActive", active_name, {}, {}, with(&Roles::first_active)));
}

ValueId FlatBuilder::add_data(Owner& owner, ScopeId scope, std::string name, std::int64_t index, TensorDesc desc) {
  Attrs attrs;
  attrs.set("index", index);
  const NodeId n = add_node(scope, "Data", std::move(name), {}, {std::move(desc)}, std::move(attrs));
  owner.order.push_back(n);
  return graph_.outputs(n)[0];
}

// Inputs as Data, then the nodes. Adds to the frame what starts and what ends in it; what makes an output
// ends in NetOutput.
Result<FlatBuilder::Level> FlatBuilder::copy_body(Owner& owner, Frame& frame, const Body& body) {
  const Graph& g = owner.graph(body);
  Level level = open(g, frame.scope, fmt::format("{}/{}/", owner.name, body.attribute));
  level.thread_scope = graph_.annotations().thread_scope.get(owner.flat);
  MST_TRY_VOID(add_values(level, &owner.level));
  for (std::size_t i = 0; i < g.inputs().size(); ++i) {
    const ValueId v = g.inputs()[i];
    level.values[v] = add_data(owner, frame.scope, level.prefix + std::string(g.name(v)), static_cast<std::int64_t>(i), g.desc(v));
    if (level.thread_scope) graph_.annotations().thread_scope.set(*graph_.producer(*level.values[v]), *level.thread_scope);
  }
  MST_TRY(const std::vector<NodeId> nodes, copy_nodes(level));
  owner.order.insert(owner.order.end(), nodes.begin(), nodes.end());

  const Dependencies deps(g);
  const auto waits_for_nothing = [&](NodeId n) { return holds_data(g.type(n)) && deps.predecessors(n).empty(); };
  std::vector<bool> makes_output(g.node_count(), false);
  for (const ValueId v : g.outputs()) {
    if (const auto p = g.producer(v)) makes_output[p->index] = true;
  }
  for (const NodeId n : g.nodes()) {
    if (waits_for_nothing(n)) continue;
    const auto preds = deps.predecessors(n);
    if (std::all_of(preds.begin(), preds.end(), waits_for_nothing)) frame.roots.push_back(*level.nodes[n]);
    if (deps.successors(n).empty() && !makes_output[n.index]) frame.leaves.push_back(*level.nodes[n]);
  }
  return level;
}

Result<void> FlatBuilder::add_net_output(Owner& owner, Frame& frame, const Level& level, std::string_view attribute,
                                         std::vector<InputRef> first) {
  const Graph& g = level.source;
  for (const NodeId n : g.nodes()) {
    if (g.type(n) == "NetOutput" && first.empty()) return {};
  }
  bool after_a_node = false;
  for (const ValueId v : g.outputs()) {
    if (!level.values[v]) return owner.wrong(fmt::format("has a body \"{}\" whose output \"{}\" is never made", attribute, g.name(v)));
    first.push_back(*level.values[v]);
  }
  for (const InputRef in : first) {
    const auto p = graph_.producer(*in.get());
    after_a_node = after_a_node || (p && graph_.scope_of(*p) == frame.scope && !holds_data(graph_.type(*p)));
  }
  const NodeId n = add_node(frame.scope, "NetOutput", owner.inside(attribute, "NetOutput"), std::move(first), {});
  owner.order.push_back(n);
  if (level.thread_scope) graph_.annotations().thread_scope.set(n, *level.thread_scope);
  if (!after_a_node) frame.roots.push_back(n);
  frame.leaves.push_back(n);
  return {};
}

// The NetOutput that add_net_output found or made.
NodeId FlatBuilder::output_of(const Owner& owner, const Frame& frame) const {
  NodeId out = owner.order.back();
  for (const NodeId n : owner.order) {
    if (graph_.type(n) == "NetOutput" && graph_.scope_of(n) == frame.scope) out = n;
  }
  return out;
}

void FlatBuilder::close_frame(const Frame& frame, NodeId closing) {
  const auto has = [&](const std::vector<NodeId>& list) { return std::find(list.begin(), list.end(), closing) != list.end(); };
  for (const NodeId n : frame.roots) {
    if (frame.head && n != closing) control_.push_back({*frame.head, n});
  }
  for (const NodeId n : frame.leaves) {
    if (n != closing) control_.push_back({n, closing});
  }
  if (frame.head && (has(frame.roots) || frame.leaves.empty())) control_.push_back({*frame.head, closing});
}

Result<void> FlatBuilder::lower_branches(Owner& owner) {
  std::vector<const Body*> branches;
  if (owner.type == "If") {
    for (const std::string_view attribute : {"then_branch", "else_branch"}) {
      branches.push_back(owner.body(attribute));
      if (branches.back() == nullptr) return owner.wrong(fmt::format("has no {}", attribute));
    }
  } else {
    // By number, however the input lists them.
    const auto bodies = owner.source().bodies(owner.node);
    branches.assign(bodies.size(), nullptr);
    for (const Body& b : bodies) {
      const std::size_t digits = b.attribute.find_last_not_of("0123456789") + 1;
      std::size_t number = bodies.size();
      std::from_chars(b.attribute.data() + digits, b.attribute.data() + b.attribute.size(), number);
      if (number >= bodies.size() || branches[number] != nullptr) {
        return owner.wrong(fmt::format("has {} branches, so their attributes end in the numbers 0 to {}; \"{}\" does not fit", bodies.size(),
                                       bodies.size() - 1, b.attribute));
      }
      branches[number] = &b;
    }
  }
  if (owner.inputs.empty() || owner.inputs[0].absent()) return owner.wrong("has no input that chooses the branch");
  const std::int64_t first = next_label_;
  const auto count = static_cast<std::int64_t>(branches.size());
  next_label_ += count + 1;
  std::vector<std::int64_t> targets;
  for (std::int64_t i = 0; i < count; ++i) targets.push_back(first + i);
  if (owner.type == "If") std::swap(targets[0], targets[1]);  // by index: false is 0

  for (std::int64_t i = 0; i < count; ++i) {
    const Body& body = *branches[static_cast<std::size_t>(i)];
    const Graph& g = owner.graph(body);
    if (g.inputs().size() + 1 != owner.inputs.size()) {
      return owner.wrong(fmt::format("hands {} inputs to its branches, \"{}\" has {}", owner.inputs.size() - 1, body.attribute, g.inputs().size()));
    }
    if (g.outputs().size() != graph_.outputs(owner.flat).size()) {
      return owner.wrong(fmt::format("has {} outputs, its branch \"{}\" {}", graph_.outputs(owner.flat).size(), body.attribute, g.outputs().size()));
    }
    Frame frame;
    frame.scope = add_scope(owner, body.attribute, false);
    if (i == 0) {
      frame.head = add_label_node(owner, frame.scope, "LabelSwitchByIndex", owner.name + "/LabelSwitchByIndex", {owner.inputs[0]}, label_list(targets));
    }
    open_frame(owner, frame, owner.inside(body.attribute, "LabelSet"), first + i, owner.inside(body.attribute, "StreamActive"));
    MST_TRY(const Level level, copy_body(owner, frame, body));
    MST_TRY_VOID(add_net_output(owner, frame, level, body.attribute));
    const bool last = i + 1 == count;
    const NodeId closing = last ? add_label_node(owner, frame.scope, "LabelSet", owner.name + "/LabelSet", {}, label_index(first + count), with(&Roles::end_node))
                                : add_label_node(owner, frame.scope, "LabelGotoEx", owner.inside(body.attribute, "LabelGotoEx"), {}, label_index(first + count));
    close_frame(frame, closing);
  }
  return {};
}

Result<void> FlatBuilder::lower_call(Owner& owner) {
  const auto bodies = owner.source().bodies(owner.node);
  if (bodies.size() != 1) return owner.wrong(fmt::format("has {} nested graphs, needs one", bodies.size()));
  const Graph& g = owner.graph(bodies[0]);
  if (g.inputs().size() != owner.inputs.size() || g.outputs().size() != graph_.outputs(owner.flat).size()) {
    return owner.wrong(fmt::format("has {} inputs and {} outputs, its graph {} and {}", owner.inputs.size(), graph_.outputs(owner.flat).size(),
                                   g.inputs().size(), g.outputs().size()));
  }
  Frame frame;
  frame.scope = add_scope(owner, bodies[0].attribute, false);
  open_frame(owner, frame, "", std::nullopt, owner.name + "/StreamActive");
  MST_TRY(const Level level, copy_body(owner, frame, bodies[0]));
  MST_TRY_VOID(add_net_output(owner, frame, level, bodies[0].attribute));
  const NodeId closing = output_of(owner, frame);
  Roles roles = graph_.annotations().roles.get(closing).value_or(Roles{});
  roles.end_node = true;
  graph_.annotations().roles.set(closing, roles);
  close_frame(frame, closing);
  return {};
}

// The jump back to the label of the condition, and the label that is left to.
void FlatBuilder::close_loop(Owner& owner, const Frame& turn, NodeId cond_label, std::int64_t again, std::int64_t leave) {
  const NodeId jump = add_label_node(owner, turn.scope, "LabelGoto", owner.name + "/LabelGoto", {}, label_index(again));
  const NodeId end = add_label_node(owner, turn.scope, "LabelSet", owner.name + "/LeaveLabelSet", {}, label_index(leave), with(&Roles::end_node));
  close_frame(turn, jump);
  control_.push_back({jump, end});
  graph_.add_loop_back_edge(jump, cond_label);
}

// A scope each for the condition and the body: CondLabelSet .. LabelSwitch[leave, enter], EnterLabelSet ..
// LabelGoto(cond), LeaveLabelSet.
Result<void> FlatBuilder::lower_while(Owner& owner) {
  const Body* cond = owner.body("cond");
  const Body* body = owner.body("body");
  if (cond == nullptr || body == nullptr) return owner.wrong(fmt::format("has no {}", cond == nullptr ? "cond" : "body"));
  const std::size_t carried = owner.inputs.size();
  if (owner.graph(*cond).inputs().size() != carried || owner.graph(*cond).outputs().size() != 1) {
    return owner.wrong(fmt::format("carries {} values; its cond has {} inputs and {} outputs, needs {} and 1", carried,
                                   owner.graph(*cond).inputs().size(), owner.graph(*cond).outputs().size(), carried));
  }
  if (owner.graph(*body).inputs().size() != carried || owner.graph(*body).outputs().size() != carried || graph_.outputs(owner.flat).size() != carried) {
    return owner.wrong(fmt::format("carries {} values; it has {} outputs, its body {} inputs and {} outputs", carried, graph_.outputs(owner.flat).size(),
                                   owner.graph(*body).inputs().size(), owner.graph(*body).outputs().size()));
  }
  const std::int64_t again = next_label_;
  const std::int64_t enter = again + 1;
  const std::int64_t leave = again + 2;
  next_label_ += 3;

  Frame test;
  test.scope = add_scope(owner, cond->attribute, false);
  open_frame(owner, test, owner.name + "/CondLabelSet", again, owner.name + "/CondStreamActive");
  const NodeId cond_label = owner.order[0];
  MST_TRY(const Level cond_level, copy_body(owner, test, *cond));
  const auto predicate = cond_level.values[cond_level.source.outputs()[0]];
  if (!predicate) return owner.wrong("has a cond whose output is never made");
  const NodeId decide = add_label_node(owner, test.scope, "LabelSwitch", owner.name + "/LabelSwitch", {*predicate}, label_list({leave, enter}));
  const auto made_by = graph_.producer(*predicate);
  if (made_by && graph_.scope_of(*made_by) == test.scope && !holds_data(graph_.type(*made_by))) test.leaves.push_back(*made_by);
  close_frame(test, decide);

  Frame turn;
  turn.scope = add_scope(owner, body->attribute, false);
  open_frame(owner, turn, owner.name + "/EnterLabelSet", enter, owner.name + "/EnterStreamActive");
  MST_TRY(const Level body_level, copy_body(owner, turn, *body));
  MST_TRY_VOID(add_net_output(owner, turn, body_level, body->attribute));
  close_loop(owner, turn, cond_label, again, leave);
  return {};
}

// Loop(trips, condition, carried...), Scan(states..., scanned...), For(start, limit, step, carried...): the
// counter is a carried value of its own.
Result<void> FlatBuilder::lower_counted(Owner& owner) {
  const Body* body = owner.body("body");
  if (body == nullptr) return owner.wrong("has no body");
  const Graph& g = owner.graph(*body);
  const std::size_t outputs = graph_.outputs(owner.flat).size();
  const bool loop = owner.type == "Loop";
  const bool scan = owner.type == "Scan";
  const std::size_t scanned = scan ? static_cast<std::size_t>(std::max<std::int64_t>(0, graph_.attrs(owner.flat).get_int("num_scan_inputs", 0))) : 0;
  if (scan && (scanned < 1 || scanned > owner.inputs.size())) return owner.wrong(fmt::format("scans {} of {} inputs", scanned, owner.inputs.size()));
  const std::size_t own = loop ? 2 : scan ? 0 : 3;  // inputs that steer it
  if (owner.inputs.size() < own) return owner.wrong(fmt::format("has {} inputs, needs at least {}", owner.inputs.size(), own));
  const std::size_t want_inputs = owner.inputs.size() - own + (loop ? 2 : scan ? 0 : 1);
  const std::size_t want_outputs = outputs + (loop ? 1 : 0);
  if (g.inputs().size() != want_inputs || g.outputs().size() != want_outputs) {
    return owner.wrong(fmt::format("has {} inputs and {} outputs, its body {} and {}, needs {} and {}", owner.inputs.size(), outputs,
                                   g.inputs().size(), g.outputs().size(), want_inputs, want_outputs));
  }
  if (!loop && !scan && (owner.inputs[0].absent() || owner.inputs[1].absent() || owner.inputs[2].absent())) {
    return owner.wrong("needs a start, a limit and a step");
  }
  const std::int64_t again = next_label_;
  const std::int64_t enter = again + 1;
  const std::int64_t leave = again + 2;
  next_label_ += 3;
  const TensorDesc one = TensorDesc::of(DType::i64, {});
  const TensorDesc counter = loop ? one_element(g.desc(g.inputs()[0]), DType::i64) : scan ? one : graph_.desc(*owner.inputs[0].get());

  // cond: iteration < limit, and what the body said.
  Frame test;
  test.scope = add_scope(owner, "cond", false);
  open_frame(owner, test, owner.name + "/CondLabelSet", again, owner.name + "/CondStreamActive");
  const NodeId cond_label = owner.order[0];
  const auto task = [&](Frame& frame, std::string_view type, std::string name, std::vector<InputRef> inputs, TensorDesc desc, Attrs attrs = {}) {
    const NodeId n = add_node(frame.scope, type, std::move(name), std::move(inputs), {std::move(desc)}, std::move(attrs));
    owner.order.push_back(n);
    return n;
  };
  std::optional<NodeId> decides;
  ValueId predicate;
  const bool limited = !loop || !owner.inputs[0].absent();
  if (limited) {
    const ValueId iteration = add_data(owner, test.scope, owner.inside("cond", "iteration"), 0, counter);
    std::optional<ValueId> limit = loop ? owner.inputs[0].get() : scan ? std::nullopt : owner.inputs[1].get();
    std::string_view compare = "Less";
    if (scan) {
      const std::size_t at = owner.inputs.size() - scanned;
      if (owner.inputs[at].absent()) return owner.wrong(fmt::format("input {}, which it scans, is left out", at));
      const ValueId x = *owner.inputs[at].get();
      const auto axes = graph_.attrs(owner.flat).get_ints("scan_input_axes");
      std::int64_t axis = axes.empty() ? 0 : axes[0];
      const auto& shape = graph_.desc(x).shape;
      if (shape && axis < 0) axis += static_cast<std::int64_t>(shape->size());
      if (shape && (axis < 0 || axis >= static_cast<std::int64_t>(shape->size()))) return owner.wrong(fmt::format("scans axis {} of {}", axis, to_string(graph_.desc(x))));
      if (shape && (*shape)[static_cast<std::size_t>(axis)].known()) {
        limit = add_constant(owner.inside("cond", "turns"), scalar(DType::i64, *(*shape)[static_cast<std::size_t>(axis)].value));
      } else {
        Attrs attrs;
        attrs.set("start", axis);
        if (axis != -1) attrs.set("end", axis + 1);
        const NodeId turns = task(test, "Shape", owner.inside("cond", "turns"), {x}, TensorDesc::of(DType::i64, {1}), std::move(attrs));
        test.roots.push_back(turns);
        decides = turns;
        limit = graph_.outputs(turns)[0];
      }
    } else if (!loop) {
      const auto step = constant_int(graph_, owner.inputs[2]);
      if (step && *step < 0) compare = "Greater";
    }
    const bool waits = decides.has_value();
    decides = task(test, compare, owner.inside("cond", compare), {iteration, *limit}, {DType::boolean, joined(counter, graph_.desc(*limit))});
    if (!waits) test.roots.push_back(*decides);
    predicate = graph_.outputs(*decides)[0];
  }
  // With a trip count and no condition the body's word does not count; with neither it is the only end.
  if (loop && (!owner.inputs[1].absent() || !limited)) {
    const TensorDesc said = one_element(g.desc(g.inputs()[1]), DType::boolean);
    const ValueId condition = add_data(owner, test.scope, owner.inside("cond", "condition"), limited ? 1 : 0, said);
    if (decides) {
      decides = task(test, "And", owner.inside("cond", "And"), {predicate, condition}, {DType::boolean, joined(graph_.desc(predicate), said)});
      predicate = graph_.outputs(*decides)[0];
    } else {
      predicate = condition;
    }
  }
  const NodeId decide = add_label_node(owner, test.scope, "LabelSwitch", owner.name + "/LabelSwitch", {predicate}, label_list({leave, enter}));
  if (decides) test.leaves.push_back(*decides);
  close_frame(test, decide);

  // body: what the source says, and the step.
  Frame turn;
  turn.scope = add_scope(owner, body->attribute, false);
  open_frame(owner, turn, owner.name + "/EnterLabelSet", enter, owner.name + "/EnterStreamActive");
  MST_TRY(const Level level, copy_body(owner, turn, *body));
  std::vector<InputRef> first;
  if (limited || loop) {
    const ValueId iteration = scan ? add_data(owner, turn.scope, owner.inside(body->attribute, "iteration"), static_cast<std::int64_t>(g.inputs().size()), counter)
                                   : *level.values[g.inputs()[0]];
    const InputRef step = loop || scan ? InputRef(add_constant(owner.inside(body->attribute, "one"), scalar(DType::i64, 1))) : owner.inputs[2];
    const NodeId next = task(turn, "Add", owner.inside(body->attribute, "next_iteration"), {iteration, step},
                             {counter.dtype, joined(counter, graph_.desc(*step.get()))});
    turn.roots.push_back(next);
    first.push_back(graph_.outputs(next)[0]);
  }
  MST_TRY_VOID(add_net_output(owner, turn, level, body->attribute, std::move(first)));
  close_loop(owner, turn, cond_label, again, leave);
  return {};
}

// Scopes without labels or activations: others run them. The owner has run when all in them has.
Result<void> FlatBuilder::keep_apart(Owner& owner) {
  for (const Body& body : owner.source().bodies(owner.node)) {
    Frame frame;
    frame.scope = add_scope(owner, body.attribute, owner.graph(body).dynamic());
    MST_TRY(const Level level, copy_body(owner, frame, body));
    MST_TRY_VOID(add_net_output(owner, frame, level, body.attribute));
    close_frame(frame, output_of(owner, frame));
  }
  return {};
}

}  // namespace millstream
