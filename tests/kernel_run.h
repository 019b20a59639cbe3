// SPDX-License-Identifier: Apache-2.0
// Runs one node through its shape function and its kernel.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "millstream/kernels/kernel.h"
#include "millstream/ops/op.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MST_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MST_THREAD_SANITIZER 1
#endif

namespace millstream::testing {

// The OpenMP runtime is not instrumented: the thread sanitizer does not see how its threads hand work over and
// reports each of them. Under it one thread runs an operator; what runs at once there are streams.
#ifdef MST_THREAD_SANITIZER
inline constexpr int kMostThreads = 1;
#else
inline constexpr int kMostThreads = 64;
#endif

struct KernelCall {
  std::string type;
  std::vector<std::optional<Tensor>> inputs;  ///< nullopt = left out
  Attrs attrs = {};
  int opset = 21;
  std::size_t outputs = 1;
  int threads = 1;
  enum class Binding { shaped, constant, shapeless } binding = Binding::shaped;  ///< of inputs after the first
};

inline Result<std::vector<Tensor>> run_kernel(const KernelCall& call, StreamScratch& scratch) {
  Graph graph;
  graph.set_opset(call.opset);
  std::vector<InputRef> refs;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    if (!call.inputs[i]) {
      refs.emplace_back();
    } else if (call.binding == KernelCall::Binding::constant && i > 0) {
      refs.push_back(graph.add_constant(name, *call.inputs[i]));
    } else if (call.binding == KernelCall::Binding::shapeless) {
      refs.push_back(graph.add_input(name, TensorDesc{call.inputs[i]->dtype(), std::nullopt}));
    } else {
      refs.push_back(graph.add_input(name, call.inputs[i]->desc()));
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < call.outputs; ++i) names.push_back("out" + std::to_string(i));
  const std::vector<std::string_view> views(names.begin(), names.end());
  const NodeId node = graph.add_node({call.type, "n", refs, views, call.attrs});
  std::vector<const Tensor*> inputs;
  for (const auto& t : call.inputs) inputs.push_back(t ? &*t : nullptr);
  MST_TRY(const std::vector<TensorDesc> descs, infer_node(graph, node, inputs));
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < call.outputs; ++i) {
    outputs.push_back(Tensor(descs[i].dtype, descs[i].dims()));
    std::memset(outputs.back().mutable_bytes(), 0x5a, outputs.back().byte_size());
    const bool known = call.binding != KernelCall::Binding::shapeless;
    graph.set_desc(graph.outputs(node)[i], known ? descs[i] : TensorDesc{descs[i].dtype, std::nullopt});
  }
  const KernelFactory factory = cpu_kernels().find(call.type);
  if (factory == nullptr) return Error{ErrorCode::unsupported_operator, "no kernel for " + call.type};
  MST_TRY(const std::unique_ptr<Kernel> kernel, factory(KernelSpec{graph, node, std::min(call.threads, kMostThreads)}));
  KernelArgs args(inputs, outputs, scratch);
  MST_TRY_VOID(kernel->run(args));
  return outputs;
}

inline Result<std::vector<Tensor>> run_kernel(const KernelCall& call) {
  StreamScratch scratch;
  return run_kernel(call, scratch);
}

/// Uniform in [-1, 1].
inline Tensor random_f32(std::mt19937& random, std::vector<std::int64_t> shape) {
  Tensor out(DType::f32, std::move(shape));
  for (float& v : out.as_mutable<float>()) {
    v = static_cast<float>(random() % 20001) / 10000.0f - 1.0f;
  }
  return out;
}

template <class T>
Tensor tensor_of(DType type, std::vector<std::int64_t> shape, std::vector<T> values) {
  Tensor out(type, std::move(shape));
  MST_CHECK(values.size() == static_cast<std::size_t>(out.elements()), "as many values as elements");
  std::copy(values.begin(), values.end(), out.as_mutable<T>().begin());
  return out;
}

/// Largest |a - b| / (1 + |b|); infinity when the shapes differ.
inline double distance(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.elements() != b.elements()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double x = static_cast<double>(a.as<float>()[at]), y = static_cast<double>(b.as<float>()[at]);
    const double d = std::abs(x - y) / (1 + std::abs(y));
    worst = d <= worst ? worst : d;  // NaN counts as far
    if (d != d) return std::numeric_limits<double>::infinity();
  }
  return worst;
}

}  // namespace millstream::testing
