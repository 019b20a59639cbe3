// SPDX-License-Identifier: Apache-2.0
#include "millstream/kernels/product.h"

namespace millstream {

Result<ProductShape> matmul_shape(std::string_view node, std::span<const std::int64_t> a_dims,
                                  std::span<const std::int64_t> b_dims) {
  if (a_dims.empty() || b_dims.empty()) return kernel_failed(node, "a factor is a scalar");
  ProductShape s;
  s.a.assign(a_dims.begin(), a_dims.end());
  s.b.assign(b_dims.begin(), b_dims.end());
  if (s.a.size() == 1) s.a.insert(s.a.begin(), 1);
  if (s.b.size() == 1) s.b.push_back(1);
  if (s.a.back() != s.b[s.b.size() - 2]) {
    return kernel_failed(node, fmt::format("inner extents {} and {} differ", s.a.back(), s.b[s.b.size() - 2]));
  }
  if (s.b.size() == 2) s.a = {count_of(s.a, 0, s.a.size() - 1), s.a.back()};
  const std::size_t rank = std::max(s.a.size(), s.b.size());
  s.a.insert(s.a.begin(), rank - s.a.size(), 1);
  s.b.insert(s.b.begin(), rank - s.b.size(), 1);
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (s.a[i] != s.b[i] && s.a[i] != 1 && s.b[i] != 1) {
      return kernel_failed(node, fmt::format("batch extents {} and {} do not broadcast", s.a[i], s.b[i]));
    }
    s.dst.push_back(s.a[i] == 1 ? s.b[i] : s.a[i]);
  }
  s.dst.push_back(s.a[rank - 2]);
  s.dst.push_back(s.b[rank - 1]);
  return s;
}

Result<PreparedProduct> PreparedProduct::make(const ProductShape& s, const float* packed_from) {
  PreparedProduct out;
  const auto as_used = [](Dims dims, bool transposed) {
    Dims strides = strides_of(dims);
    if (transposed) {
      std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
      std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    }
    return std::pair(dims, onednn::strided(dims, strides));
  };
  const auto [a_dims, a] = as_used(s.a, s.trans_a);
  const auto [b_dims, b] = as_used(s.b, s.trans_b);
  std::optional<onednn::Desc> bias;
  if (s.bias) {
    Dims bias_dims(s.dst.size(), 1);
    bias_dims.back() = s.dst.back();
    bias = onednn::plain(bias_dims);
  }
  const onednn::Desc dst = onednn::plain(s.dst);
  // Only constant matrices are worth another layout.
  const onednn::Desc weights = packed_from != nullptr && s.b.size() == 2 ? onednn::any(b_dims) : b;
  MST_TRY(out.prepared_, onednn::make_matmul(a, weights, bias, dst, s.alpha));
  out.b_file_ = b;
  if (packed_from != nullptr && out.prepared_.weights != b) {
    MST_TRY(out.packed_, onednn::reordered_copy(b, packed_from, out.prepared_.weights));
  }
  return out;
}

Result<void> PreparedProduct::run(const float* a, const float* b, const float* bias, float* dst,
                                  StreamScratch& scratch, std::string_view node) const {
  const auto memory = [](const onednn::Desc& desc, const void* bytes) {
    return dnnl::memory(desc, onednn::engine(), const_cast<void*>(bytes));
  };
  std::byte* pad = scratch.bytes(prepared_.scratch_bytes).data();
  std::unordered_map<int, dnnl::memory> args = {
      {DNNL_ARG_SRC, memory(prepared_.src, a)},
      {DNNL_ARG_WEIGHTS, packed_ ? packed_ : memory(b_file_, b)},
      {DNNL_ARG_DST, memory(prepared_.dst, dst)},
      {DNNL_ARG_SCRATCHPAD, memory(prepared_.scratchpad, pad)}};
  if (prepared_.bias) args.emplace(DNNL_ARG_BIAS, memory(*prepared_.bias, bias));
  return onednn::execute(prepared_.primitive, scratch, args, node);
}

}  // namespace millstream
