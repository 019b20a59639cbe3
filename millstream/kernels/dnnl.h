// SPDX-License-Identifier: Apache-2.0
// The one place that knows oneDNN's versions (2.x and 3.x): engine, streams, descriptors, primitives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

#include "millstream/core/result.h"
#include "millstream/kernels/kernel.h"

namespace millstream {

/// Library handles of one stream; made on first use.
struct StreamScratch::Handles {
  dnnl::stream stream;
};

namespace onednn {

/// The CPU engine: immutable, shared by all streams.
const dnnl::engine& engine();

/// Sets the calling thread's OpenMP team size for its lifetime: primitives bake the size in when they
/// are created, and must run with the same.
class ThreadCount {
 public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

using Desc = dnnl::memory::desc;

/// f32, row-major.
Desc plain(std::span<const std::int64_t> dims);
/// f32 with element strides.
Desc strided(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides);
/// The same, or null when oneDNN cannot describe it (it takes some interleaved steps for overlap).
std::optional<Desc> try_strided(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides);
/// f32, layout chosen by the primitive.
Desc any(std::span<const std::int64_t> dims);

/// Calls f, which returns a Result, and turns what oneDNN throws into an error of this code.
template <class F>
auto guarded(ErrorCode code, F f) -> decltype(f()) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    return Error{code, std::string("oneDNN: ") + error.what()};
  }
}

/// A primitive with the layouts it chose and the scratch it needs.
struct Prepared {
  dnnl::primitive primitive;
  Desc src;
  Desc weights;
  std::optional<Desc> bias;
  Desc dst;
  std::size_t scratch_bytes = 0;
  Desc scratchpad;
};

/// Convolution windows; spatial vectors have one entry a spatial dimension.
struct ConvWindow {
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;  ///< 1 = dense
  std::vector<std::int64_t> begin;      ///< padding
  std::vector<std::int64_t> end;
};

/// `weights` dims are [M, C, k...] or, grouped, [g, M/g, C/g, k...]. `bias` is [M] or absent.
/// Error: unsupported_operator with oneDNN's message.
Result<Prepared> make_convolution(const Desc& src, const Desc& weights, const std::optional<Desc>& bias,
                                  const Desc& dst, const ConvWindow& window);
Result<Prepared> make_deconvolution(const Desc& src, const Desc& weights,
                                    const std::optional<Desc>& bias, const Desc& dst,
                                    const ConvWindow& window);
/// dst = alpha * (src x weights) + bias over the last two dimensions, leading ones broadcast.
/// `bias` needs alpha == 1.
Result<Prepared> make_matmul(const Desc& src, const Desc& weights, const std::optional<Desc>& bias,
                             const Desc& dst, float alpha);

/// A reorder between two f32 layouts.
struct PreparedReorder {
  dnnl::reorder primitive;
  std::size_t scratch_bytes = 0;
  Desc scratchpad;
};
Result<PreparedReorder> make_reorder(const Desc& from, const Desc& to);

/// Bytes in `from` copied into new memory laid out as `to`, now, on the calling thread's stream.
Result<dnnl::memory> reordered_copy(const Desc& from, const void* bytes, const Desc& to);

/// C = alpha * op(A) * op(B) + beta * C, row-major, leading dimensions in elements.
void sgemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
           std::int64_t ldc);

/// Runs and waits. Error: kernel, naming `node`.
Result<void> execute(const dnnl::primitive& primitive, StreamScratch& scratch,
                     const std::unordered_map<int, dnnl::memory>& args, std::string_view node);

}  // namespace onednn
}  // namespace millstream
