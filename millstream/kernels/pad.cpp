// SPDX-License-Identifier: Apache-2.0
// Movement by an index map a dimension: Pad in all modes, CenterCropPad, Trilu, ReverseSequence, Col2Im.
#include <algorithm>
#include <cstring>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/elements.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

/// Where each index of one output dimension reads from; -1 = the fill value.
using IndexMap = std::vector<std::int64_t>;

/// out[i0, i1, ...] = in[maps[0][i0], maps[1][i1], ...], or `fill` where some map says -1.
template <class T>
void gather_mapped(const T* in, const Dims& in_strides, T* out, const std::vector<IndexMap>& maps, T fill, int threads) {
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < maps.size(); ++d) rows *= static_cast<std::int64_t>(maps[d].size());
  const IndexMap& inner = maps.back();
  const auto length = static_cast<std::int64_t>(inner.size());
  // The stretch of the innermost map that is a plain copy.
  std::int64_t first = 0;
  while (first < length && inner[static_cast<std::size_t>(first)] < 0) ++first;
  std::int64_t last = first;
  while (last < length && inner[static_cast<std::size_t>(last)] >= 0 &&
         inner[static_cast<std::size_t>(last)] == inner[static_cast<std::size_t>(first)] + (last - first)) {
    ++last;
  }
  const std::int64_t run_from = first < length ? inner[static_cast<std::size_t>(first)] : 0;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && rows * length > kParallelWork)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t rest = row, base = 0;
    bool filled = false;
    for (std::size_t d = maps.size() - 1; d-- > 0;) {
      const auto n = static_cast<std::int64_t>(maps[d].size());
      const std::int64_t at = maps[d][static_cast<std::size_t>(rest % n)];
      rest /= n;
      filled = filled || at < 0;
      base += at * in_strides[d];
    }
    T* to = out + row * length;
    if (filled) {
      std::fill(to, to + length, fill);
      continue;
    }
    std::fill(to, to + first, fill);
    std::copy(in + base + run_from, in + base + run_from + (last - first), to + first);
    for (std::int64_t i = last; i < length; ++i) {
      const std::int64_t at = inner[static_cast<std::size_t>(i)];
      to[i] = at < 0 ? fill : in[base + at];
    }
  }
}

Result<void> run_mapped(std::string_view node, const Tensor& in, Tensor& out, std::vector<IndexMap> maps,
                        const std::byte* fill, int threads) {
  Dims dims = dims_of(in);
  if (maps.empty()) {  // a scalar
    maps.push_back({0});
    dims.push_back(1);
  }
  for (std::size_t d = 0; d < maps.size(); ++d) {
    const std::int64_t have = out.shape().empty() ? 1 : out.shape()[d];
    if (static_cast<std::int64_t>(maps[d].size()) != have) {
      return kernel_failed(node, fmt::format("output dimension {} is {}, expected {}", d, have, maps[d].size()));
    }
  }
  if (out.elements() == 0) return {};
  if (!with_width(in.dtype(), [&](auto e) {
        using T = typename decltype(e)::Type;
        T value;
        std::memset(&value, 0, sizeof value);
        if (fill != nullptr) std::memcpy(&value, fill, sizeof value);
        gather_mapped(reinterpret_cast<const T*>(in.bytes()), strides_of(dims),
                      reinterpret_cast<T*>(out.mutable_bytes()), maps, value, threads);
      })) {
    return wrong_element(node, in.dtype());
  }
  return {};
}

enum class PadMode { constant, reflect, edge, wrap };

/// Padding of one dimension of length n. Negative padding crops first, then the rest is padded.
Result<IndexMap> pad_map(std::string_view node, std::int64_t n, std::int64_t begin, std::int64_t end, PadMode mode) {
  const std::int64_t skip = std::max<std::int64_t>(0, -begin), drop = std::max<std::int64_t>(0, -end);
  const std::int64_t kept = n - skip - drop;
  begin = std::max<std::int64_t>(0, begin), end = std::max<std::int64_t>(0, end);
  if (kept < 0 || (kept == 0 && begin + end > 0 && mode != PadMode::constant)) {
    return kernel_failed(node, fmt::format("pads leave nothing of a dimension of {}", n));
  }
  IndexMap map;
  map.reserve(static_cast<std::size_t>(begin + kept + end));
  for (std::int64_t i = -begin; i < kept + end; ++i) {
    std::int64_t at = i;
    if (i < 0 || i >= kept) {
      switch (mode) {
        case PadMode::constant: at = -1; break;
        case PadMode::edge: at = std::clamp<std::int64_t>(i, 0, kept - 1); break;
        case PadMode::wrap: at = (i % kept + kept) % kept; break;
        case PadMode::reflect: {
          const std::int64_t period = std::max<std::int64_t>(1, 2 * (kept - 1));
          at = (i % period + period) % period;
          if (at >= kept) at = period - at;
          break;
        }
      }
    }
    map.push_back(at < 0 ? -1 : at + skip);
  }
  return map;
}

/// Pads are an attribute before operator set 11; axes came with 18, wrap with 19.
Result<std::unique_ptr<Kernel>> make_pad(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  const std::string name = spec.attrs().get_string("mode", "constant");
  PadMode mode = PadMode::constant;
  if (name == "reflect") mode = PadMode::reflect;
  else if (name == "edge") mode = PadMode::edge;
  else if (name == "wrap") mode = PadMode::wrap;
  else if (name != "constant") return unsupported_node(spec, fmt::format("mode = \"{}\"", name));
  const bool from_attributes = spec.opset() < 11;
  if (from_attributes) {
    if (auto refusal = refuse_element(spec, 0, kReal)) return *refusal;
  }
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads, mode, from_attributes,
                               fixed = spec.attrs().get_ints("pads"),
                               value = spec.attrs().get_float("value", 0.0f)](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    const std::size_t rank = in.shape().size();
    std::vector<std::int64_t> pads = fixed, axes;
    if (!from_attributes) {
      MST_TRY(std::vector<std::int64_t> read, read_ints(node, args.input(1)));
      pads = std::move(read);
      if (args.has_input(3)) {
        MST_TRY(std::vector<std::int64_t> read_axes, read_ints(node, args.input(3)));
        axes = std::move(read_axes);
      }
    }
    if (axes.empty() && pads.size() == 2 * rank) {
      for (std::size_t d = 0; d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d));
    }
    if (pads.size() != 2 * axes.size()) {
      return kernel_failed(node, fmt::format("{} pads for {} axes", pads.size(), axes.size()));
    }
    std::vector<std::int64_t> begin(rank, 0), end(rank, 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      MST_TRY(const std::size_t d, resolve_axis(node, axes[i], rank));
      begin[d] = pads[i];
      end[d] = pads[i + axes.size()];
    }
    std::vector<IndexMap> maps;
    for (std::size_t d = 0; d < rank; ++d) {
      MST_TRY(IndexMap map, pad_map(node, in.shape()[d], begin[d], end[d], mode));
      maps.push_back(std::move(map));
    }
    const std::byte* fill = nullptr;
    Tensor own;
    if (!from_attributes && args.has_input(2) && args.input(2).elements() > 0) {
      if (args.input(2).dtype() != in.dtype()) return wrong_element(node, args.input(2).dtype());
      fill = args.input(2).bytes();
    } else if (from_attributes) {
      own = Tensor(in.dtype(), {1});
      with_element<kReal>(in.dtype(), [&](auto e) {
        using T = typename decltype(e)::Type;
        own.as_mutable<T>()[0] = static_cast<T>(value);
      });
      fill = own.bytes();
    }
    return run_mapped(node, in, args.output(0), std::move(maps), fill, threads);
  });
}

/// Each listed axis is cropped or zero-padded around its centre; the odd element goes to the end when
/// padding and is dropped at the end when cropping.
Result<std::unique_ptr<Kernel>> make_center_crop_pad(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel(
      [node = std::string(spec.name()), threads = spec.threads](KernelArgs& args) -> Result<void> {
        const Tensor& in = args.input(0);
        Tensor& out = args.output(0);
        if (in.shape().size() != out.shape().size()) return kernel_failed(node, "output rank differs");
        std::vector<IndexMap> maps;
        for (std::size_t d = 0; d < in.shape().size(); ++d) {
          const std::int64_t have = in.shape()[d], want = out.shape()[d];
          const std::int64_t begin = want >= have ? (want - have) / 2 : -((have - want) / 2);
          MST_TRY(IndexMap map, pad_map(node, have, begin, want - have - begin, PadMode::constant));
          maps.push_back(std::move(map));
        }
        return run_mapped(node, in, out, std::move(maps), nullptr, threads);
      });
}

Result<std::unique_ptr<Kernel>> make_trilu(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               upper = spec.attrs().get_int("upper", 1) != 0](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    std::int64_t k = 0;
    if (args.has_input(1)) {
      MST_TRY(const std::vector<std::int64_t> read, read_ints(node, args.input(1)));
      if (read.size() != 1) return kernel_failed(node, "k must be one number");
      k = read[0];
    }
    const std::size_t rank = in.shape().size();
    if (rank < 2) return kernel_failed(node, "expected at least two dimensions");
    const std::int64_t rows = in.shape()[rank - 2], columns = in.shape()[rank - 1];
    k = std::clamp(k, -rows, columns);
    const std::int64_t all = in.elements() == 0 ? 0 : in.elements() / columns;
    const std::size_t width = dtype_bits(in.dtype()) / 8;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && in.elements() > kParallelWork)
    for (std::int64_t r = 0; r < all; ++r) {
      // Row r keeps [edge, columns) of the upper triangle, [0, edge + 1) of the lower one.
      const std::int64_t edge = r % rows + k;
      const std::int64_t first = upper ? std::clamp<std::int64_t>(edge, 0, columns) : 0;
      const std::int64_t last = upper ? columns : std::clamp<std::int64_t>(edge + 1, 0, columns);
      std::byte* to = out.mutable_bytes() + static_cast<std::size_t>(r * columns) * width;
      const std::byte* from = in.bytes() + static_cast<std::size_t>(r * columns) * width;
      std::memset(to, 0, static_cast<std::size_t>(first) * width);
      std::memcpy(to + static_cast<std::size_t>(first) * width, from + static_cast<std::size_t>(first) * width,
                  static_cast<std::size_t>(last - first) * width);
      std::memset(to + static_cast<std::size_t>(last) * width, 0, static_cast<std::size_t>(columns - last) * width);
    }
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_reverse_sequence(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kWholeBytes)) return *refusal;
  const std::int64_t batch = spec.attrs().get_int("batch_axis", 1), time = spec.attrs().get_int("time_axis", 0);
  if (batch + time != 1 || batch * time != 0) return unsupported_node(spec, "batch_axis and time_axis must be 0 and 1");
  return make_function_kernel([node = std::string(spec.name()), batch](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    const auto shape = in.shape();
    if (shape.size() < 2) return kernel_failed(node, "expected at least two dimensions");
    MST_TRY(const std::vector<std::int64_t> lengths, read_ints(node, args.input(1)));
    const std::int64_t times = shape[batch == 0 ? 1 : 0], batches = shape[batch == 0 ? 0 : 1];
    if (static_cast<std::int64_t>(lengths.size()) != batches) {
      return kernel_failed(node, fmt::format("{} sequence lengths for a batch of {}", lengths.size(), batches));
    }
    const std::size_t block =
        static_cast<std::size_t>(count_of(shape, 2, shape.size())) * dtype_bits(in.dtype()) / 8;
    for (std::int64_t b = 0; b < batches; ++b) {
      const std::int64_t length = lengths[static_cast<std::size_t>(b)];
      if (length < 0 || length > times) return kernel_failed(node, fmt::format("sequence length {} of {}", length, times));
      for (std::int64_t t = 0; t < times; ++t) {
        const std::int64_t from = t < length ? length - 1 - t : t;
        const auto at = [&](std::int64_t step) {
          return static_cast<std::size_t>(batch == 0 ? b * times + step : step * batches + b) * block;
        };
        std::memcpy(args.output(0).mutable_bytes() + at(t), in.bytes() + at(from), block);
      }
    }
    return {};
  });
}

/// Columns [N, C * prod(block), L] back to images [N, C, image...]: overlapping blocks add up.
Result<std::unique_ptr<Kernel>> make_col2im(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kReal)) return *refusal;
  const Attrs& attrs = spec.attrs();
  return make_function_kernel([node = std::string(spec.name()), dilations = attrs.get_ints("dilations"),
                               pads = attrs.get_ints("pads"), strides = attrs.get_ints("strides")](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    Tensor& out = args.output(0);
    MST_TRY(const std::vector<std::int64_t> image, read_ints(node, args.input(1)));
    MST_TRY(const std::vector<std::int64_t> block, read_ints(node, args.input(2)));
    const std::size_t rank = image.size();
    const auto filled = [&](std::vector<std::int64_t> v, std::size_t n, std::int64_t otherwise) {
      if (v.empty()) v.assign(n, otherwise);
      return v;
    };
    const auto dilation = filled(dilations, rank, 1), stride = filled(strides, rank, 1), pad = filled(pads, 2 * rank, 0);
    if (rank == 0 || block.size() != rank || dilation.size() != rank || stride.size() != rank || pad.size() != 2 * rank ||
        in.shape().size() != 3 || out.shape().size() != rank + 2) {
      return kernel_failed(node, "image_shape, block_shape and attributes differ in length");
    }
    Dims steps(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      if (stride[d] < 1 || block[d] < 1) return kernel_failed(node, "strides and block_shape must be positive");
      const std::int64_t room = image[d] + pad[d] + pad[d + rank] - dilation[d] * (block[d] - 1) - 1;
      steps[d] = room < 0 ? 0 : room / stride[d] + 1;
    }
    const std::int64_t taps = count_of(block), positions = count_of(steps), pixels = count_of(image);
    const std::int64_t planes = in.shape()[0] * (in.shape()[1] / taps);
    if (in.shape()[1] % taps != 0 || in.shape()[2] != positions || out.elements() != planes * pixels) {
      return kernel_failed(node, fmt::format("{} does not hold blocks of [{}] over [{}]", to_string(in.desc()),
                                             fmt::join(block, ","), fmt::join(image, ",")));
    }
    return on_element<kReal>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      const T* x = in.as<T>().data();
      T* y = out.as_mutable<T>().data();
      std::vector<Wide<T>> sum(static_cast<std::size_t>(pixels));
      for (std::int64_t p = 0; p < planes; ++p) {
        std::fill(sum.begin(), sum.end(), Wide<T>(0));
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          for (std::int64_t l = 0; l < positions; ++l) {
            std::int64_t rest_tap = tap, rest = l, at = 0, scale = 1;
            bool inside = true;
            for (std::size_t d = rank; d-- > 0;) {
              const std::int64_t i =
                  rest % steps[d] * stride[d] - pad[d] + rest_tap % block[d] * dilation[d];
              rest /= steps[d];
              rest_tap /= block[d];
              inside = inside && i >= 0 && i < image[d];
              at += i * scale;
              scale *= image[d];
            }
            if (inside) sum[static_cast<std::size_t>(at)] += static_cast<Wide<T>>(x[(p * taps + tap) * positions + l]);
          }
        }
        for (std::int64_t i = 0; i < pixels; ++i) y[p * pixels + i] = static_cast<T>(sum[static_cast<std::size_t>(i)]);
      }
    });
  });
}

constexpr KernelEntry kEntries[] = {
    {"CenterCropPad", make_center_crop_pad},
    {"Col2Im", make_col2im},
    {"Pad", make_pad},
    {"ReverseSequence", make_reverse_sequence},
    {"Trilu", make_trilu},
};

}  // namespace

std::span<const KernelEntry> kernels_pad() { return kEntries; }

}  // namespace millstream
