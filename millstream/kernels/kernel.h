// SPDX-License-Identifier: Apache-2.0
// What a CPU kernel is and how it is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream {

/// Scratch memory and library handles of one stream: kernels of two streams never share one (field
/// reports: a shared handle or workspace makes streams race). Grows, never shrinks during a run.
class StreamScratch {
 public:
  StreamScratch();
  ~StreamScratch();
  StreamScratch(StreamScratch&&) noexcept;
  StreamScratch& operator=(StreamScratch&&) noexcept;
  /// 64-byte aligned; contents undefined; valid until the next call on this object.
  std::span<std::byte> bytes(std::size_t size);
  struct Handles;  ///< oneDNN stream and the like, made on first use (kernels/dnnl.h)
  Handles& handles();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One call of a kernel. Inputs and outputs are row-major. An absent optional input is null.
class KernelArgs {
 public:
  KernelArgs(std::span<const Tensor* const> inputs, std::span<Tensor> outputs, StreamScratch& scratch)
      : inputs_(inputs), outputs_(outputs), scratch_(scratch) {}
  std::size_t input_count() const { return inputs_.size(); }
  bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Tensor& input(std::size_t i) const { return *inputs_[i]; }
  std::size_t output_count() const { return outputs_.size(); }
  /// Allocated with its final type and shape, except for data-dependent operators, which assign it.
  Tensor& output(std::size_t i) { return outputs_[i]; }
  StreamScratch& scratch() { return scratch_; }

 private:
  std::span<const Tensor* const> inputs_;
  std::span<Tensor> outputs_;
  StreamScratch& scratch_;
};

/// Prepared for one node: primitives built, weights packed. `run` is called from one thread at a time
/// for one node, and may use `threads` OpenMP threads (the caller has set the count). Same inputs, same
/// threads: same bits, wherever the buffers lie (64-byte aligned).
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Result<void> run(KernelArgs& args) = 0;
};

struct KernelSpec {
  const Graph& graph;
  NodeId node;
  int threads;  ///< OpenMP threads an operator may use
  std::uint64_t max_bytes = ~std::uint64_t{0};  ///< what one tensor that is made during the run may take
  std::string_view type() const { return graph.type(node); }
  std::string_view name() const { return graph.name(node); }
  const Attrs& attrs() const { return graph.attrs(node); }
  int opset() const { return graph.opset(); }
  std::size_t input_count() const { return graph.inputs(node).size(); }
  bool has_input(std::size_t i) const {
    return i < input_count() && !graph.inputs(node)[i].absent();
  }
  /// Desc of an input that is present.
  const TensorDesc& input_desc(std::size_t i) const { return graph.desc(*graph.inputs(node)[i].get()); }
  const TensorDesc& output_desc(std::size_t i) const { return graph.desc(graph.outputs(node)[i]); }
  /// The constant bound to an input, or null.
  const Tensor* constant(std::size_t i) const {
    return has_input(i) ? graph.constant(*graph.inputs(node)[i].get()) : nullptr;
  }
};

/// Errors: unsupported_operator with the reason (dtype, attribute, layout) when this kernel cannot take
/// the node; never a wrong result.
using KernelFactory = Result<std::unique_ptr<Kernel>> (*)(const KernelSpec&);

struct KernelEntry {
  std::string_view type;
  KernelFactory make;
};

/// Kernels by operator type; later tables override earlier ones (exec adds If, Loop, Scan).
class KernelTable {
 public:
  void add(std::span<const KernelEntry> entries);
  KernelFactory find(std::string_view type) const;
  std::vector<std::string_view> types() const;

 private:
  std::vector<KernelEntry> entries_;  // sorted by type
};

/// Every CPU kernel of this build.
const KernelTable& cpu_kernels();

}  // namespace millstream
