// SPDX-License-Identifier: Apache-2.0
#include "millstream/kernels/dnnl.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <omp.h>

#include "millstream/core/large_pages.h"

namespace millstream {

struct StreamScratch::State {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::optional<Handles> handles;
  ~State() { std::free(data); }
};

StreamScratch::StreamScratch() : state_(std::make_unique<State>()) {}
StreamScratch::~StreamScratch() = default;
StreamScratch::StreamScratch(StreamScratch&&) noexcept = default;
StreamScratch& StreamScratch::operator=(StreamScratch&&) noexcept = default;

std::span<std::byte> StreamScratch::bytes(std::size_t size) {
  if (size > state_->size) {
    // At least doubling keeps the number of growths logarithmic.
    const std::size_t wanted = (std::max(size, 2 * state_->size) + 63) / 64 * 64;
    std::free(state_->data);
    state_->data = static_cast<std::byte*>(std::aligned_alloc(64, wanted));
    MST_CHECK(state_->data != nullptr, "out of memory");
    state_->size = wanted;
  }
  return {state_->data, size};
}

StreamScratch::Handles& StreamScratch::handles() {
  if (!state_->handles) state_->handles.emplace(Handles{dnnl::stream(onednn::engine())});
  return *state_->handles;
}

namespace onednn {
namespace {

using dnnl::memory;

memory::dims to_dims(std::span<const std::int64_t> values) { return {values.begin(), values.end()}; }

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  // Scratchpads come from the stream's own scratch: a library-owned one would be shared by streams.
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

template <class PrimitiveDesc, class Primitive>
Prepared prepared_from(const PrimitiveDesc& pd, bool bias, Primitive primitive) {
  Prepared out;
  out.primitive = std::move(primitive);
  out.src = pd.src_desc();
  out.weights = pd.weights_desc();
  if (bias) out.bias = pd.bias_desc();
  out.dst = pd.dst_desc();
  out.scratchpad = pd.scratchpad_desc();
  out.scratch_bytes = out.scratchpad.get_size();
  return out;
}

Error refused(std::string_view what, const dnnl::error& error) {
  return Error{ErrorCode::unsupported_operator, fmt::format("oneDNN: {}: {}", what, error.what())};
}

memory::dims from_one(std::span<const std::int64_t> dilations) {
  memory::dims out(dilations.begin(), dilations.end());
  for (auto& d : out) d -= 1;  // oneDNN counts the gaps
  return out;
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

ThreadCount::ThreadCount(int threads) : before_(omp_get_max_threads()) {
  if (threads != before_) omp_set_num_threads(threads);
}
ThreadCount::~ThreadCount() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

Desc strided(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides) {
  return Desc(to_dims(dims), memory::data_type::f32, to_dims(strides));
}

std::optional<Desc> try_strided(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides) {
  const Desc desc(to_dims(dims), memory::data_type::f32, to_dims(strides), true);
  return desc ? std::optional<Desc>(desc) : std::nullopt;
}

Desc plain(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<std::int64_t>(dims[i], 1);
  return strided(dims, strides);
}

Desc any(std::span<const std::int64_t> dims) {
  return Desc(to_dims(dims), memory::data_type::f32, memory::format_tag::any);
}

Result<Prepared> make_convolution(const Desc& src, const Desc& weights, const std::optional<Desc>& bias,
                                  const Desc& dst, const ConvWindow& w) {
  try {
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    const auto pd = bias ? dnnl::convolution_forward::primitive_desc(
                               engine(), kind, algorithm, src, weights, *bias, dst, to_dims(w.strides),
                               from_one(w.dilations), to_dims(w.begin), to_dims(w.end), user_scratchpad())
                         : dnnl::convolution_forward::primitive_desc(
                               engine(), kind, algorithm, src, weights, dst, to_dims(w.strides),
                               from_one(w.dilations), to_dims(w.begin), to_dims(w.end), user_scratchpad());
#else
    const auto desc = bias ? dnnl::convolution_forward::desc(kind, algorithm, src, weights, *bias, dst,
                                                             to_dims(w.strides), from_one(w.dilations),
                                                             to_dims(w.begin), to_dims(w.end))
                           : dnnl::convolution_forward::desc(kind, algorithm, src, weights, dst,
                                                             to_dims(w.strides), from_one(w.dilations),
                                                             to_dims(w.begin), to_dims(w.end));
    const dnnl::convolution_forward::primitive_desc pd(desc, user_scratchpad(), engine());
#endif
    return prepared_from(pd, bias.has_value(), dnnl::convolution_forward(pd));
  } catch (const dnnl::error& error) {
    return refused("convolution", error);
  }
}

Result<Prepared> make_deconvolution(const Desc& src, const Desc& weights,
                                    const std::optional<Desc>& bias, const Desc& dst,
                                    const ConvWindow& w) {
  try {
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto algorithm = dnnl::algorithm::deconvolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    const auto pd = bias ? dnnl::deconvolution_forward::primitive_desc(
                               engine(), kind, algorithm, src, weights, *bias, dst, to_dims(w.strides),
                               from_one(w.dilations), to_dims(w.begin), to_dims(w.end), user_scratchpad())
                         : dnnl::deconvolution_forward::primitive_desc(
                               engine(), kind, algorithm, src, weights, dst, to_dims(w.strides),
                               from_one(w.dilations), to_dims(w.begin), to_dims(w.end), user_scratchpad());
#else
    const auto desc = bias ? dnnl::deconvolution_forward::desc(kind, algorithm, src, weights, *bias, dst,
                                                               to_dims(w.strides), from_one(w.dilations),
                                                               to_dims(w.begin), to_dims(w.end))
                           : dnnl::deconvolution_forward::desc(kind, algorithm, src, weights, dst,
                                                               to_dims(w.strides), from_one(w.dilations),
                                                               to_dims(w.begin), to_dims(w.end));
    const dnnl::deconvolution_forward::primitive_desc pd(desc, user_scratchpad(), engine());
#endif
    return prepared_from(pd, bias.has_value(), dnnl::deconvolution_forward(pd));
  } catch (const dnnl::error& error) {
    return refused("deconvolution", error);
  }
}

Result<Prepared> make_matmul(const Desc& src, const Desc& weights, const std::optional<Desc>& bias,
                             const Desc& dst, float alpha) {
  MST_CHECK(!bias || alpha == 1.0f, "oneDNN adds the bias before the scale");
  try {
    dnnl::primitive_attr attr = user_scratchpad();
    if (alpha != 1.0f) {
      dnnl::post_ops ops;
#if DNNL_VERSION_MAJOR >= 3
      ops.append_eltwise(dnnl::algorithm::eltwise_linear, alpha, 0.0f);
#else
      ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, alpha, 0.0f);
#endif
      attr.set_post_ops(ops);
    }
#if DNNL_VERSION_MAJOR >= 3
    const auto pd = bias ? dnnl::matmul::primitive_desc(engine(), src, weights, *bias, dst, attr)
                         : dnnl::matmul::primitive_desc(engine(), src, weights, dst, attr);
#else
    const auto desc = bias ? dnnl::matmul::desc(src, weights, *bias, dst)
                           : dnnl::matmul::desc(src, weights, dst);
    const dnnl::matmul::primitive_desc pd(desc, attr, engine());
#endif
    return prepared_from(pd, bias.has_value(), dnnl::matmul(pd));
  } catch (const dnnl::error& error) {
    return refused("matmul", error);
  }
}

Result<PreparedReorder> make_reorder(const Desc& from, const Desc& to) {
  try {
    const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, user_scratchpad());
    PreparedReorder out;
    out.primitive = dnnl::reorder(pd);
    out.scratchpad = pd.scratchpad_desc();
    out.scratch_bytes = out.scratchpad.get_size();
    return out;
  } catch (const dnnl::error& error) {
    return refused("reorder", error);
  }
}

Result<dnnl::memory> reordered_copy(const Desc& from, const void* bytes, const Desc& to) {
  try {
    dnnl::stream stream(engine());
    memory source(from, engine(), const_cast<void*>(bytes));
    memory target(to, engine());
    prefer_large_pages(target.get_data_handle(), to.get_size());
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
    return target;
  } catch (const dnnl::error& error) {
    return refused("reorder", error);
  }
}

void sgemm(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
           std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == 0.0f ? 0.0f : beta * c[i * ldc + j];
    }
    return;
  }
  const dnnl::status status = dnnl::sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, alpha, a, lda,
                                          b, ldb, beta, c, ldc);
  MST_CHECK(status == dnnl::status::success, "dnnl_sgemm refused valid sizes");
}

Result<void> execute(const dnnl::primitive& primitive, StreamScratch& scratch,
                     const std::unordered_map<int, dnnl::memory>& args, std::string_view node) {
  try {
    dnnl::stream& stream = scratch.handles().stream;
    primitive.execute(stream, args);
    stream.wait();
    return {};
  } catch (const dnnl::error& error) {
    return Error{ErrorCode::kernel, fmt::format("node \"{}\": oneDNN: {}", node, error.what())};
  }
}

}  // namespace onednn
}  // namespace millstream
