// SPDX-License-Identifier: Apache-2.0
// A kernel that is one function of its arguments, and the two errors kernels give.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "millstream/kernels/kernel.h"

namespace millstream {

template <class F>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(F function) : function_(std::move(function)) {}
  Result<void> run(KernelArgs& args) override {
    if constexpr (std::is_void_v<decltype(function_(args))>) {
      function_(args);
      return {};
    } else {
      return function_(args);
    }
  }

 private:
  F function_;
};

/// `make_function_kernel([...](KernelArgs& args) {...})`; the function returns void or Result<void>.
template <class F>
Result<std::unique_ptr<Kernel>> make_function_kernel(F function) {
  return std::unique_ptr<Kernel>(std::make_unique<FunctionKernel<F>>(std::move(function)));
}

/// The factory's refusal: this kernel does not take the node.
inline Error unsupported_node(const KernelSpec& spec, std::string_view reason) {
  return Error{ErrorCode::unsupported_operator,
               fmt::format("no CPU kernel for node \"{}\" ({}): {}", spec.name(), spec.type(), reason)};
}

/// A run-time failure, which stops the run.
inline Error kernel_failed(std::string_view node, std::string_view what) {
  return Error{ErrorCode::kernel, fmt::format("node \"{}\": {}", node, what)};
}

using Dims = std::vector<std::int64_t>;

inline Dims dims_of(const Tensor& tensor) { return {tensor.shape().begin(), tensor.shape().end()}; }

/// Product of dims[first, last).
inline std::int64_t count_of(std::span<const std::int64_t> dims, std::size_t first, std::size_t last) {
  std::int64_t n = 1;
  for (std::size_t i = first; i < last; ++i) n *= dims[i];
  return n;
}
inline std::int64_t count_of(std::span<const std::int64_t> dims) { return count_of(dims, 0, dims.size()); }

/// Row-major strides in elements.
inline Dims strides_of(std::span<const std::int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// Loops shorter than this many element operations run on one thread: starting a team costs more.
inline constexpr std::int64_t kParallelWork = 1 << 15;

}  // namespace millstream
