// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. Rounding is to nearest, ties to even, then the
// zero point is added and the sum saturates.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/cast.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

constexpr ElementSet kQuantized = element_set({DType::u8, DType::i8, DType::u16, DType::i16, DType::u4, DType::i4,
                                               DType::f4e2m1}) | kFloat8;

/// Which scale an element uses: [outer, axis, inner] with one scale a tensor, an axis index or a block of
/// `block` axis indices.
struct Grid {
  std::int64_t length = 1;  ///< of the axis
  std::int64_t inner = 1;
  std::int64_t block = 1;
  bool whole = true;  ///< one scale for all
  bool blocked = false;

  std::int64_t scale_of(std::int64_t element) const {
    if (whole) return 0;
    const std::int64_t at = element / inner % length;
    if (!blocked) return at;
    const std::int64_t blocks = (length + block - 1) / block;
    return (element / (inner * length) * blocks + at / block) * inner + element % inner;
  }
};

Result<Grid> make_grid(std::string_view node, const Tensor& x, const Tensor& scale, std::int64_t axis, std::int64_t block) {
  Grid grid;
  if (scale.elements() == 1 && block == 0 && scale.shape().size() <= 1 && (scale.shape().empty() || x.shape().empty())) return grid;
  if (x.shape().empty()) return kernel_failed(node, "a scalar takes one scale");
  if (block == 0 && scale.elements() == 1) {
    // One scale in a vector of one: per tensor, or per axis of length one, which is the same.
    return grid;
  }
  MST_TRY(const std::size_t d, resolve_axis(node, axis, x.shape().size()));
  grid.whole = false;
  grid.length = x.shape()[d];
  grid.inner = count_of(x.shape(), d + 1, x.shape().size());
  grid.blocked = block > 0;
  if (!grid.blocked) {
    if (scale.elements() != grid.length) {
      return kernel_failed(node, fmt::format("{} scales for axis {} of {}", scale.elements(), d, to_string(x.desc())));
    }
    return grid;
  }
  grid.block = block;
  Dims want = dims_of(x);
  want[d] = (want[d] + block - 1) / block;
  if (want != dims_of(scale)) {
    return kernel_failed(node, fmt::format("scales {} for blocks of {} along axis {} of {}", to_string(scale.desc()), block, d,
                                           to_string(x.desc())));
  }
  return grid;
}

/// Any element type as floats; empty when absent.
std::optional<std::vector<float>> floats_of(const Tensor& t) {
  std::vector<float> out(static_cast<std::size_t>(t.elements()));
  if (!load_floats(t.dtype(), t.bytes(), 0, t.elements(), out.data())) return std::nullopt;
  return out;
}

struct Range {
  float low, high;
};
std::optional<Range> range_of(DType type) {
  switch (type) {
    case DType::u8: return Range{0, 255};
    case DType::i8: return Range{-128, 127};
    case DType::u16: return Range{0, 65535};
    case DType::i16: return Range{-32768, 32767};
    case DType::u4: return Range{0, 15};
    case DType::i4: return Range{-8, 7};
    default: return std::nullopt;
  }
}

constexpr std::int64_t kChunk = 1024;

Result<std::unique_ptr<Kernel>> make_quantize(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kReal | element_set({DType::i32}))) return *refusal;
  const DType to = spec.output_desc(0).dtype;
  if (to != DType::undefined && !contains(kQuantized, to)) {
    return unsupported_node(spec, fmt::format("the output has element type {}", dtype_name(to)));
  }
  const Attrs& attrs = spec.attrs();
  return make_function_kernel([node = std::string(spec.name()), axis = attrs.get_int("axis", 1),
                               block = attrs.get_int("block_size", 0),
                               saturate = attrs.get_int("saturate", 1) != 0](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    Tensor& out = args.output(0);
    MST_TRY(const Grid grid, make_grid(node, x, args.input(1), axis, block));
    const auto scale = floats_of(args.input(1));
    std::optional<std::vector<float>> zero;
    if (args.has_input(2)) zero = floats_of(args.input(2));
    if (!scale || (args.has_input(2) && (!zero || zero->size() != scale->size()))) {
      return kernel_failed(node, "scale and zero point do not fit together");
    }
    const std::optional<Range> range = range_of(out.dtype());
    float chunk[kChunk];
    for (std::int64_t first = 0; first < x.elements(); first += kChunk) {
      const std::int64_t n = std::min(kChunk, x.elements() - first);
      if (!load_floats(x.dtype(), x.bytes(), first, n, chunk)) return wrong_element(node, x.dtype());
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(grid.scale_of(first + i));
        const float y = chunk[i] / (*scale)[at];
        const float offset = zero ? (*zero)[at] : 0.0f;
        // f8 and f4 round when they are stored.
        chunk[i] = range ? std::clamp(std::nearbyint(y) + offset, range->low, range->high) : y + offset;
      }
      if (!store_floats(out.dtype(), chunk, first, n, saturate, out.mutable_bytes())) return wrong_element(node, out.dtype());
    }
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_dequantize(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kQuantized | element_set({DType::i32}))) return *refusal;
  if (auto refusal = refuse_element(spec, 1, kReal)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), axis = spec.attrs().get_int("axis", 1),
                               block = spec.attrs().get_int("block_size", 0)](KernelArgs& args) -> Result<void> {
    const Tensor& x = args.input(0);
    Tensor& out = args.output(0);
    MST_TRY(const Grid grid, make_grid(node, x, args.input(1), axis, block));
    const auto scale = floats_of(args.input(1));
    std::optional<std::vector<float>> zero;
    if (args.has_input(2)) zero = floats_of(args.input(2));
    if (!scale || (args.has_input(2) && (!zero || zero->size() != scale->size()))) {
      return kernel_failed(node, "scale and zero point do not fit together");
    }
    float chunk[kChunk];
    for (std::int64_t first = 0; first < x.elements(); first += kChunk) {
      const std::int64_t n = std::min(kChunk, x.elements() - first);
      const bool wide = x.dtype() == DType::i32;
      if (!wide && !load_floats(x.dtype(), x.bytes(), first, n, chunk)) return wrong_element(node, x.dtype());
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(grid.scale_of(first + i));
        const float offset = zero ? (*zero)[at] : 0.0f;
        if (wide) {
          // An i32 needs more than float's 24 bits before it is scaled.
          const double value = x.as<std::int32_t>()[static_cast<std::size_t>(first + i)];
          chunk[i] = static_cast<float>((value - static_cast<double>(offset)) * static_cast<double>((*scale)[at]));
        } else {
          chunk[i] = (chunk[i] - offset) * (*scale)[at];
        }
      }
      if (!store_floats(out.dtype(), chunk, first, n, true, out.mutable_bytes())) return wrong_element(node, out.dtype());
    }
    return {};
  });
}

/// y = u8 of x over the range of x widened to hold 0; scale and zero point come out too.
Result<std::unique_ptr<Kernel>> make_dynamic_quantize(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, element_set({DType::f32}))) return *refusal;
  return make_function_kernel([node = std::string(spec.name())](KernelArgs& args) -> Result<void> {
    const auto x = args.input(0).as<float>();
    if (args.output_count() < 3) return kernel_failed(node, "expected three outputs");
    float low = 0, high = 0;
    for (const float v : x) low = std::min(low, v), high = std::max(high, v);
    const float scale = (high - low) / 255.0f;
    const float zero = scale == 0 ? 0.0f : std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
    const auto y = args.output(0).as_mutable<std::uint8_t>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float v = scale == 0 ? zero : std::nearbyint(x[i] / scale) + zero;
      y[i] = static_cast<std::uint8_t>(v != v ? 0.0f : std::clamp(v, 0.0f, 255.0f));
    }
    args.output(1).as_mutable<float>()[0] = scale;
    args.output(2).as_mutable<std::uint8_t>()[0] = static_cast<std::uint8_t>(zero);
    return {};
  });
}

constexpr KernelEntry kEntries[] = {
    {"DequantizeLinear", make_dequantize},
    {"DynamicQuantizeLinear", make_dynamic_quantize},
    {"QuantizeLinear", make_quantize},
};

}  // namespace

std::span<const KernelEntry> kernels_quantize() { return kEntries; }

}  // namespace millstream
