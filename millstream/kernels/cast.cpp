// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike between every number type, bool, the f8 kinds and the 4-bit kinds. Strings have no
// kernel. Rules where a value does not fit: integers keep their low bits; a real that is out of an
// integer's range becomes the nearest end, NaN becomes 0; real to real rounds to nearest even.
#include <algorithm>
#include <cmath>
#include <limits>

#include "millstream/kernels/cast.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

template <class To, class From>
To converted(From value) {
  const auto x = static_cast<std::conditional_t<std::is_same_v<From, Bool8>, bool, Wide<From>>>(value);
  if constexpr (std::is_same_v<To, Bool8>) {
    return Bool8(x != 0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<decltype(x + 0)> &&
                       std::is_floating_point_v<Wide<From>>) {
    using W = Wide<From>;
    // The ends as reals: the upper one may round up to 2^k, which is already out of range.
    constexpr W kLow = static_cast<W>(std::numeric_limits<To>::lowest());
    constexpr W kHigh = static_cast<W>(std::numeric_limits<To>::max());
    if (x != x) return To(0);
    if (x <= kLow) return std::numeric_limits<To>::lowest();
    if (x >= kHigh) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else if constexpr (std::is_same_v<To, F16> || std::is_same_v<To, BF16>) {
    return To(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

constexpr std::int64_t kChunk = 1024;

float read_nibble(DType type, std::uint8_t code) {
  switch (type) {
    case DType::u4: return static_cast<float>(code);
    case DType::i4: return static_cast<float>(code >= 8 ? static_cast<int>(code) - 16 : static_cast<int>(code));
    default: return widen(kF4E2M1, code);
  }
}
std::uint8_t make_nibble(DType type, float x) {
  if (type == DType::f4e2m1) return static_cast<std::uint8_t>(narrow(kF4E2M1, x, true));
  const float low = type == DType::i4 ? -8.0f : 0.0f, high = type == DType::i4 ? 7.0f : 15.0f;
  const float rounded = x != x ? 0.0f : std::clamp(std::nearbyint(x), low, high);
  return static_cast<std::uint8_t>(static_cast<int>(rounded) & 15);
}

}  // namespace

const SmallFloat* f8_format(DType type) {
  switch (type) {
    case DType::f8e4m3fn: return &kF8E4M3FN;
    case DType::f8e4m3fnuz: return &kF8E4M3FNUZ;
    case DType::f8e5m2: return &kF8E5M2;
    case DType::f8e5m2fnuz: return &kF8E5M2FNUZ;
    default: return nullptr;
  }
}

bool load_floats(DType type, const std::byte* bytes, std::int64_t first, std::int64_t n, float* out) {
  if (const SmallFloat* f8 = f8_format(type)) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(bytes) + first;
    for (std::int64_t i = 0; i < n; ++i) out[i] = widen(*f8, codes[i]);
    return true;
  }
  if (contains(kFourBit, type)) {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto pair = static_cast<std::uint8_t>(bytes[(first + i) / 2]);
      out[i] = read_nibble(type, (first + i) % 2 == 0 ? pair & 15u : pair >> 4);
    }
    return true;
  }
  return with_element<kNumber | kBool>(type, [&](auto e) {
    using T = typename decltype(e)::Type;
    const T* from = reinterpret_cast<const T*>(bytes) + first;
    for (std::int64_t i = 0; i < n; ++i) out[i] = converted<float>(from[i]);
  });
}

bool store_floats(DType type, const float* in, std::int64_t first, std::int64_t n, bool saturate, std::byte* bytes) {
  if (const SmallFloat* f8 = f8_format(type)) {
    auto* codes = reinterpret_cast<std::uint8_t*>(bytes) + first;
    for (std::int64_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(narrow(*f8, in[i], saturate));
    return true;
  }
  if (contains(kFourBit, type)) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint8_t code = make_nibble(type, in[i]);
      std::byte& pair = bytes[(first + i) / 2];
      if ((first + i) % 2 == 0) {
        pair = std::byte{code};
      } else {
        pair = (pair & std::byte{15}) | std::byte(static_cast<std::uint8_t>(code << 4));
      }
    }
    return true;
  }
  return with_element<kNumber | kBool>(type, [&](auto e) {
    using T = typename decltype(e)::Type;
    T* to = reinterpret_cast<T*>(bytes) + first;
    for (std::int64_t i = 0; i < n; ++i) to[i] = converted<T>(in[i]);
  });
}

bool cast_elements(const Tensor& in, Tensor& out, bool saturate, int threads) {
  const std::int64_t n = in.elements();
  constexpr ElementSet kPlain = kNumber | kBool;
  if (contains(kPlain, in.dtype()) && contains(kPlain, out.dtype())) {
    return with_element<kPlain>(in.dtype(), [&](auto f) {
      using From = typename decltype(f)::Type;
      with_element<kPlain>(out.dtype(), [&](auto t) {
        using To = typename decltype(t)::Type;
        map_elements(out.as_mutable<To>().data(), in.as<From>().data(), n, threads,
                     [](From x) { return converted<To>(x); });
      });
    });
  }
  // One side is f8 or 4-bit: every such value is a float, so float in the middle loses nothing.
  float chunk[kChunk];
  for (std::int64_t first = 0; first < n; first += kChunk) {
    const std::int64_t count = std::min(kChunk, n - first);
    if (!load_floats(in.dtype(), in.bytes(), first, count, chunk)) return false;
    if (!store_floats(out.dtype(), chunk, first, count, saturate, out.mutable_bytes())) return false;
  }
  return n > 0 || (dtype_bits(in.dtype()) != 0 && dtype_bits(out.dtype()) != 0);
}

namespace {

Result<std::unique_ptr<Kernel>> make_cast(const KernelSpec& spec) {
  constexpr ElementSet kAll = kNumber | kBool | kFloat8 | kFourBit;
  if (auto refusal = refuse_element(spec, 0, kAll)) return *refusal;
  const DType to = spec.output_desc(0).dtype;
  if (to != DType::undefined && !contains(kAll, to)) {
    return unsupported_node(spec, fmt::format("the output has element type {}", dtype_name(to)));
  }
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads,
                               saturate = spec.attrs().get_int("saturate", 1) != 0](KernelArgs& args) -> Result<void> {
    if (!cast_elements(args.input(0), args.output(0), saturate, threads)) {
      return kernel_failed(node, fmt::format("cannot cast {} to {}", dtype_name(args.input(0).dtype()),
                                             dtype_name(args.output(0).dtype())));
    }
    return {};
  });
}

constexpr KernelEntry kEntries[] = {{"Cast", make_cast}, {"CastLike", make_cast}};

}  // namespace

std::span<const KernelEntry> kernels_cast() { return kEntries; }

}  // namespace millstream
