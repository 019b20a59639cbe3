// SPDX-License-Identifier: Apache-2.0
#include "millstream/ops/infer_control.h"

#include <fmt/format.h>

namespace millstream {
namespace {

using Descs = Result<std::vector<TensorDesc>>;
using InferBody = std::function<Result<void>(Graph&)>;

Error wrong(const ShapeContext& c, std::string what) {
  return Error{ErrorCode::shape, fmt::format("{} \"{}\": {}", c.type, c.node, what)};
}

TensorDesc at(const ShapeContext& c, std::size_t i) { return c.inputs[i] != nullptr ? *c.inputs[i] : TensorDesc{}; }

std::optional<BodyId> body_named(const Graph& graph, NodeId node, std::string_view attribute) {
  for (const Body& b : graph.bodies(node)) {
    if (b.attribute == attribute) return b.body;
  }
  return std::nullopt;
}

// A branch whose shapes contradict each other cannot run; the model may still be sound, since the other
// one may be all that is ever taken. So such a branch says nothing, unless neither is left.
Descs infer_if(Graph& graph, NodeId node, const ShapeContext& c, const InferBody& infer_body) {
  std::optional<std::vector<TensorDesc>> out;
  std::optional<Error> broken;
  for (const std::string_view branch : {"then_branch", "else_branch"}) {
    const auto id = body_named(graph, node, branch);
    if (!id) return wrong(c, fmt::format("has no {}", branch));
    Graph& body = graph.mutable_body(*id);
    if (!body.inputs().empty()) return wrong(c, fmt::format("its {} has inputs, needs none", branch));
    if (body.outputs().size() != c.output_count) {
      return wrong(c, fmt::format("its {} has {} outputs, needs {}", branch, body.outputs().size(), c.output_count));
    }
    auto inferred = infer_body(body);
    if (!inferred.ok()) {
      if (inferred.error().code != ErrorCode::shape || broken) return std::move(inferred).error();
      broken = std::move(inferred).error();
      continue;
    }
    std::vector<TensorDesc> descs;
    for (const ValueId v : body.outputs()) descs.push_back(body.desc(v));
    if (!out) {
      out = std::move(descs);
      continue;
    }
    for (std::size_t i = 0; i < descs.size(); ++i) (*out)[i] = join((*out)[i], descs[i]);
  }
  if (!out) return *broken;
  return *std::move(out);
}

// Turns `carried` (the state before the first turn) into descs that hold before and after every turn;
// the body keeps what was inferred last. `fixed` are the descs of the other body inputs.
Result<std::vector<TensorDesc>> settle(Graph& kept, const ShapeContext& c, std::vector<TensorDesc> before,
                                       std::size_t first_input, std::size_t first_output, std::size_t count,
                                       const InferBody& infer_body) {
  const Graph pristine = kept;  // each attempt starts from the hints alone
  for (int attempt = 0;; ++attempt) {
    kept = pristine;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const ValueId v = kept.inputs()[i];
      // A hint of the body's own would bind a dimension that the second turn changes.
      kept.set_desc(v, before[i].dtype == DType::undefined ? refine(before[i], kept.desc(v)) : before[i]);
    }
    MST_TRY_VOID(infer_body(kept));
    bool stable = true;
    std::vector<TensorDesc> joined = before;
    for (std::size_t i = 0; i < count; ++i) {
      TensorDesc& state = joined[first_input + i];
      const TensorDesc after = kept.desc(kept.outputs()[first_output + i]);
      if (state.dtype != DType::undefined && after.dtype != DType::undefined && state.dtype != after.dtype) {
        return wrong(c, fmt::format("carried value {} enters as {} and leaves as {}", i, to_string(state),
                                    to_string(after)));
      }
      TensorDesc both = join(state, after);
      if (attempt >= 3) both.shape.reset();  // changes may pass from value to value, one a turn
      if (both.dtype == DType::undefined) both.dtype = state.dtype != DType::undefined ? state.dtype : after.dtype;
      stable = stable && both == state;
      state = std::move(both);
    }
    // Element types that are unknown may still arrive one a turn; then nothing can change any more.
    if (stable || attempt > 3 + static_cast<int>(count)) return before;
    before = std::move(joined);
  }
}

// The counter and the condition: a body may declare them with one element of any rank.
TensorDesc loop_scalar(const Graph& body, std::size_t i, DType type) {
  const TensorDesc& declared = body.desc(body.inputs()[i]);
  return TensorDesc{type, declared.elements() == 1 ? declared.shape : std::vector<Dim>{}};
}

Descs infer_loop(Graph& graph, NodeId node, const ShapeContext& c, const InferBody& infer_body) {
  const auto id = body_named(graph, node, "body");
  if (!id) return wrong(c, "has no body");
  Graph& body = graph.mutable_body(*id);
  if (c.inputs.size() < 2) return wrong(c, fmt::format("has {} inputs, needs the trip count and the condition", c.inputs.size()));
  const std::size_t carried = c.inputs.size() - 2;
  if (body.inputs().size() != carried + 2) {
    return wrong(c, fmt::format("its body has {} inputs, needs {}", body.inputs().size(), carried + 2));
  }
  if (body.outputs().size() < carried + 1 || body.outputs().size() - 1 != c.output_count) {
    return wrong(c, fmt::format("its body has {} outputs, needs {}", body.outputs().size(), c.output_count + 1));
  }
  std::vector<TensorDesc> before = {loop_scalar(body, 0, DType::i64), loop_scalar(body, 1, DType::boolean)};
  for (std::size_t i = 0; i < carried; ++i) before.push_back(at(c, 2 + i));
  MST_TRY(const std::vector<TensorDesc> state, settle(body, c, std::move(before), 2, 1, carried, infer_body));
  std::vector<TensorDesc> out;
  for (std::size_t i = 0; i < carried; ++i) out.push_back(state[2 + i]);
  for (std::size_t i = carried; i < c.output_count; ++i) {
    // The turns stack up in front; how many there are, the condition may decide.
    TensorDesc desc = body.desc(body.outputs()[1 + i]);
    if (desc.shape) desc.shape->insert(desc.shape->begin(), Dim{});
    out.push_back(std::move(desc));
  }
  return out;
}

// Scan since opset 9: no batch dimension.
Descs infer_scan(Graph& graph, NodeId node, const ShapeContext& c, const InferBody& infer_body) {
  const auto id = body_named(graph, node, "body");
  if (!id) return wrong(c, "has no body");
  Graph& body = graph.mutable_body(*id);
  const std::int64_t scanned = c.attrs.get_int("num_scan_inputs", 0);
  if (scanned < 1 || static_cast<std::size_t>(scanned) > c.inputs.size()) {
    return wrong(c, fmt::format("num_scan_inputs is {}, the node has {} inputs", scanned, c.inputs.size()));
  }
  const std::size_t states = c.inputs.size() - static_cast<std::size_t>(scanned);
  if (body.inputs().size() != c.inputs.size() || body.outputs().size() != c.output_count || c.output_count < states) {
    return wrong(c, fmt::format("its body has {} inputs and {} outputs, needs {} and {}", body.inputs().size(),
                                body.outputs().size(), c.inputs.size(), c.output_count));
  }
  const auto in_axes = c.attrs.get_ints("scan_input_axes");
  const auto out_axes = c.attrs.get_ints("scan_output_axes");
  std::vector<TensorDesc> before;
  Dim turns;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    TensorDesc desc = at(c, i);
    if (i >= states && desc.shape) {
      const std::size_t k = i - states;
      const auto rank = static_cast<std::int64_t>(desc.shape->size());
      std::int64_t axis = k < in_axes.size() ? in_axes[k] : 0;
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return wrong(c, fmt::format("scan_input_axes[{}] is out of range for {}", k, to_string(desc)));
      const Dim d = (*desc.shape)[static_cast<std::size_t>(axis)];
      if (turns.known() && d.known() && *turns.value != *d.value) {
        return wrong(c, fmt::format("scan inputs are {} and {} long", *turns.value, *d.value));
      }
      if (!turns.known()) turns = d;
      desc.shape->erase(desc.shape->begin() + axis);
    }
    before.push_back(std::move(desc));
  }
  MST_TRY(const std::vector<TensorDesc> state, settle(body, c, std::move(before), 0, 0, states, infer_body));
  std::vector<TensorDesc> out(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(states));
  for (std::size_t i = states; i < c.output_count; ++i) {
    TensorDesc desc = body.desc(body.outputs()[i]);
    if (desc.shape) {
      const std::size_t k = i - states;
      const auto rank = static_cast<std::int64_t>(desc.shape->size()) + 1;
      std::int64_t axis = k < out_axes.size() ? out_axes[k] : 0;
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return wrong(c, fmt::format("scan_output_axes[{}] is out of range", k));
      desc.shape->insert(desc.shape->begin() + axis, turns);
    }
    out.push_back(std::move(desc));
  }
  return out;
}

// Case hands all inputs but the first to each branch, a call all of them to its graph.
Descs infer_calls(Graph& graph, NodeId node, const ShapeContext& c, std::size_t own, const InferBody& infer_body) {
  std::vector<BodyId> bodies;
  for (const Body& b : graph.bodies(node)) bodies.push_back(b.body);
  std::optional<std::vector<TensorDesc>> out;
  for (const BodyId id : bodies) {
    Graph& body = graph.mutable_body(id);
    if (c.inputs.size() < own || body.inputs().size() != c.inputs.size() - own || body.outputs().size() != c.output_count) {
      return wrong(c, fmt::format("its graph \"{}\" has {} inputs and {} outputs, needs {} and {}", body.name(), body.inputs().size(),
                                  body.outputs().size(), c.inputs.size() < own ? 0 : c.inputs.size() - own, c.output_count));
    }
    for (std::size_t i = own; i < c.inputs.size(); ++i) {
      const ValueId v = body.inputs()[i - own];
      body.set_desc(v, refine(at(c, i), body.desc(v)));
    }
    MST_TRY_VOID(infer_body(body));
    std::vector<TensorDesc> descs;
    for (const ValueId v : body.outputs()) descs.push_back(body.desc(v));
    if (!out) {
      out = std::move(descs);
      continue;
    }
    for (std::size_t i = 0; i < descs.size(); ++i) (*out)[i] = join((*out)[i], descs[i]);
  }
  return *std::move(out);  // a node without graphs does not come here
}

// While(carried...) with cond and body; For(start, limit, step, carried...), whose body has the counter in front.
Descs infer_while(Graph& graph, NodeId node, const ShapeContext& c, const InferBody& infer_body) {
  const bool counted = c.type == "For";
  const std::size_t own = counted ? 3 : 0;
  const std::size_t first = counted ? 1 : 0;
  const auto id = body_named(graph, node, "body");
  if (!id) return wrong(c, "has no body");
  Graph& body = graph.mutable_body(*id);
  if (c.inputs.size() < own || body.inputs().size() != c.inputs.size() - own + first || body.outputs().size() != c.output_count ||
      c.output_count != c.inputs.size() - own) {
    return wrong(c, fmt::format("has {} inputs and {} outputs, its body {} and {}", c.inputs.size(), c.output_count, body.inputs().size(),
                                body.outputs().size()));
  }
  std::vector<TensorDesc> before;
  if (counted) before.push_back(at(c, 0));
  for (std::size_t i = own; i < c.inputs.size(); ++i) before.push_back(at(c, i));
  MST_TRY(const std::vector<TensorDesc> state, settle(body, c, std::move(before), first, 0, c.output_count, infer_body));
  if (!counted) {
    const auto test = body_named(graph, node, "cond");
    if (!test) return wrong(c, "has no cond");
    Graph& cond = graph.mutable_body(*test);
    if (cond.inputs().size() != state.size() || cond.outputs().size() != 1) {
      return wrong(c, fmt::format("its cond has {} inputs and {} outputs, needs {} and 1", cond.inputs().size(), cond.outputs().size(), state.size()));
    }
    for (std::size_t i = 0; i < state.size(); ++i) cond.set_desc(cond.inputs()[i], refine(state[i], cond.desc(cond.inputs()[i])));
    MST_TRY_VOID(infer_body(cond));
  }
  return std::vector<TensorDesc>(state.begin() + static_cast<std::ptrdiff_t>(first), state.end());
}

}  // namespace

TensorDesc refine(const TensorDesc& found, const TensorDesc& hint) {
  TensorDesc out = found;
  if (out.dtype == DType::undefined) out.dtype = hint.dtype;
  if (!hint.shape) return out;
  if (!out.shape) {
    out.shape = hint.shape;
    return out;
  }
  if (out.shape->size() != hint.shape->size()) return out;
  for (std::size_t i = 0; i < out.shape->size(); ++i) {
    Dim& d = (*out.shape)[i];
    const Dim& h = (*hint.shape)[i];
    if (d.known()) continue;
    if (h.known() || d.symbol.empty()) d = h;
  }
  return out;
}

TensorDesc join(const TensorDesc& a, const TensorDesc& b) {
  TensorDesc out;
  if (a.dtype == b.dtype) out.dtype = a.dtype;
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return out;
  out.shape.emplace();
  for (std::size_t i = 0; i < a.shape->size(); ++i) {
    out.shape->push_back((*a.shape)[i] == (*b.shape)[i] ? (*a.shape)[i] : Dim{});
  }
  return out;
}

Result<std::vector<TensorDesc>> infer_control(Graph& graph, NodeId node, const ShapeContext& context,
                                              const std::function<Result<void>(Graph&)>& infer_body) {
  if (context.type == "If") return infer_if(graph, node, context, infer_body);
  if (context.type == "Loop") return infer_loop(graph, node, context, infer_body);
  if (context.type == "Scan") return infer_scan(graph, node, context, infer_body);
  if (context.type == "Case") return infer_calls(graph, node, context, 1, infer_body);
  if (context.type == "PartitionedCall") return infer_calls(graph, node, context, 0, infer_body);
  if (context.type == "While" || context.type == "For") return infer_while(graph, node, context, infer_body);
  return Error{ErrorCode::unsupported_operator,
               fmt::format("{} \"{}\" has a nested graph; operators that may are If, Case, While, For, Loop, Scan and PartitionedCall",
                           context.type, context.node)};
}

}  // namespace millstream
