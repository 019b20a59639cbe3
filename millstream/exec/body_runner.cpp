// SPDX-License-Identifier: Apache-2.0
#include "millstream/exec/body_runner.h"

#include <fmt/format.h>

#include "millstream/ops/op.h"

namespace millstream {

const Tensor* Captured::find(std::string_view name) const {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return values[i];
  }
  return nullptr;
}

Result<BodyRunner> BodyRunner::make(const Graph& body, const KernelTable& kernels, int threads) {
  BodyRunner runner(body);
  for (const NodeId n : body.nodes()) {
    const KernelFactory factory = kernels.find(body.type(n));
    if (factory == nullptr) {
      return Error{ErrorCode::unsupported_operator,
                   fmt::format("node \"{}\" in body \"{}\": there is no kernel for {}", body.name(n), body.name(), body.type(n))};
    }
    MST_TRY(auto kernel, factory(KernelSpec{body, n, threads}));
    runner.kernels_.push_back(std::move(kernel));
  }
  return runner;
}

Result<std::vector<Tensor>> BodyRunner::run(std::span<const Tensor> inputs, const Captured& captured, StreamScratch& scratch) {
  const Graph& g = *body_;
  if (inputs.size() != g.inputs().size()) {
    return Error{ErrorCode::kernel, fmt::format("body \"{}\" takes {} inputs, got {}", g.name(), g.inputs().size(), inputs.size())};
  }
  std::vector<Tensor> values(g.value_count());
  std::vector<bool> bound(g.value_count(), false);
  const auto bind = [&](ValueId v, const Tensor& t) {
    values[v.index] = t;
    bound[v.index] = true;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) bind(g.inputs()[i], inputs[i]);
  for (const ValueId v : g.values()) {
    if (const Tensor* t = g.constant(v)) bind(v, *t);
    if (g.kind(v) != ValueKind::outer) continue;
    const Tensor* t = captured.find(g.name(v));
    if (t == nullptr) return Error{ErrorCode::kernel, fmt::format("body \"{}\" reads \"{}\", which the enclosing graph does not give", g.name(), g.name(v))};
    bind(v, *t);
  }
  for (const NodeId n : g.order()) {
    std::vector<const Tensor*> arguments;
    for (const InputRef in : g.inputs(n)) {
      const auto v = in.get();
      if (v && !bound[v->index]) return Error{ErrorCode::kernel, fmt::format("node \"{}\" reads \"{}\" before it is there", g.name(n), g.name(*v))};
      arguments.push_back(v ? &values[v->index] : nullptr);
    }
    MST_TRY(const std::vector<TensorDesc> descs, infer_node(g, n, arguments));
    for (const ValueId v : g.captures(n)) arguments.push_back(&values[v.index]);
    std::vector<Tensor> outputs(g.outputs(n).size());
    for (std::size_t i = 0; i < outputs.size() && i < descs.size(); ++i) {
      if (descs[i].is_static()) outputs[i] = Tensor(descs[i].dtype, descs[i].dims());
    }
    KernelArgs args(arguments, outputs, scratch);
    MST_TRY_VOID(kernels_[n.index]->run(args));
    for (std::size_t i = 0; i < outputs.size(); ++i) bind(g.outputs(n)[i], outputs[i]);
  }
  std::vector<Tensor> results;
  for (const ValueId v : g.outputs()) {
    if (!bound[v.index]) return Error{ErrorCode::kernel, fmt::format("body \"{}\" does not produce \"{}\"", g.name(), g.name(v))};
    results.push_back(values[v.index]);
  }
  return results;
}

}  // namespace millstream
