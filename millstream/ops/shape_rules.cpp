// SPDX-License-Identifier: Apache-2.0
#include "millstream/ops/shape_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace millstream {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 62;
constexpr std::size_t kMostPrinted = 32;  // entries of a list in a message

std::string type_names(TypeSet set) {
  std::string out;
  for (unsigned t = 1; t <= static_cast<unsigned>(DType::i2); ++t) {
    if (!set.has(static_cast<DType>(t))) continue;
    if (!out.empty()) out += ", ";
    out += dtype_name(static_cast<DType>(t));
  }
  return out;
}

double half_value(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16;
  std::uint32_t exponent = (h >> 10) & 0x1f;
  std::uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  exponent = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | exponent << 23 | mantissa << 13);
}

template <class Out>
std::optional<std::vector<Out>> numbers(const Tensor& t, bool integers_only) {
  std::vector<Out> out;
  const auto copy = [&](auto elements) {
    for (const auto x : elements) out.push_back(static_cast<Out>(x));
  };
  switch (t.dtype()) {
    case DType::i64:
      copy(t.as<std::int64_t>());
      return out;
    case DType::i32:
      copy(t.as<std::int32_t>());
      return out;
    case DType::i16:
      copy(t.as<std::int16_t>());
      return out;
    case DType::i8:
      copy(t.as<std::int8_t>());
      return out;
    case DType::u8:
      copy(t.as<std::uint8_t>());
      return out;
    case DType::u16:
      copy(t.as<std::uint16_t>());
      return out;
    case DType::u32:
      copy(t.as<std::uint32_t>());
      return out;
    case DType::u64:
      copy(t.as<std::uint64_t>());
      return out;
    case DType::boolean:
      copy(t.as<std::uint8_t>());
      return out;
    default:
      break;
  }
  if (integers_only) return std::nullopt;
  switch (t.dtype()) {
    case DType::f32:
      copy(t.as<float>());
      return out;
    case DType::f64:
      copy(t.as<double>());
      return out;
    case DType::f16:
      for (const std::uint16_t h : t.as<std::uint16_t>())
        out.push_back(static_cast<Out>(half_value(h)));
      return out;
    case DType::bf16:
      for (const std::uint16_t h : t.as<std::uint16_t>()) {
        out.push_back(static_cast<Out>(std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16)));
      }
      return out;
    default:
      return std::nullopt;
  }
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

Error Operands::error(std::string what) const {
  return Error{ErrorCode::shape, fmt::format("{} \"{}\": {}", c_.type, c_.node, what)};
}

Error Operands::unsupported(std::string what) const {
  return Error{ErrorCode::unsupported_operator,
               fmt::format("{} \"{}\": {}", c_.type, c_.node, what)};
}

Result<void> Operands::expect_rank(std::size_t i, std::string_view what, std::size_t least,
                                   std::size_t most) const {
  const Dims* d = dims(i);
  if (d == nullptr || (d->size() >= least && d->size() <= most)) return {};
  const std::string want = least == most                 ? fmt::format("{}", least)
                           : most == OpSchema::kVariadic ? fmt::format("at least {}", least)
                                                         : fmt::format("{} to {}", least, most);
  return error(fmt::format("{} (input {}) has rank {} {}, expected {}", what, i, d->size(),
                           millstream::to_string(*d), want));
}

Result<void> Operands::expect_types(std::size_t i, std::string_view what, TypeSet allowed) const {
  const DType t = dtype(i);
  if (t == DType::undefined || allowed.has(t)) return {};
  return error(fmt::format("{} (input {}) is {}, expected one of: {}", what, i, dtype_name(t),
                           type_names(allowed)));
}

Result<DType> Operands::common_dtype(std::initializer_list<std::size_t> inputs) const {
  DType found = DType::undefined;
  std::size_t from = 0;
  for (const std::size_t i : inputs) {
    const DType t = dtype(i);
    if (t == DType::undefined) continue;
    if (found == DType::undefined) {
      found = t;
      from = i;
    } else if (t != found) {
      return error(fmt::format("input {} is {} but input {} is {}, expected the same element type",
                               from, dtype_name(found), i, dtype_name(t)));
    }
  }
  return found;
}

Result<std::size_t> Operands::axis(std::int64_t axis, std::size_t rank) const {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) {
    return error(fmt::format("axis {} lies outside [{}, {}] of rank {}", axis, -r, r - 1, rank));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

Result<Dim> Operands::same(const Dim& a, const Dim& b, std::string_view what) const {
  if (a.known() && b.known() && *a.value != *b.value) {
    return error(fmt::format("{}: have {} and {}, expected the same", what, *a.value, *b.value));
  }
  if (a.known()) return a;
  if (b.known()) return b;
  return a.symbol.empty() ? b : a;
}

std::optional<std::vector<std::int64_t>> Operands::ints(std::size_t i) const {
  const Tensor* t = value(i);
  return t == nullptr ? std::nullopt : numbers<std::int64_t>(*t, true);
}

std::optional<std::int64_t> Operands::scalar_int(std::size_t i) const {
  const auto all = ints(i);
  return all && all->size() == 1 ? std::optional<std::int64_t>(all->front()) : std::nullopt;
}

std::optional<std::vector<double>> Operands::floats(std::size_t i) const {
  const Tensor* t = value(i);
  return t == nullptr ? std::nullopt : numbers<double>(*t, false);
}

std::optional<double> Operands::scalar(std::size_t i) const {
  const auto all = floats(i);
  return all && !all->empty() ? std::optional<double>(all->front()) : std::nullopt;
}

Result<IntList> int_list(const Operands& in, std::string_view attribute, std::size_t i,
                         int input_since) {
  IntList out;
  const bool as_input = in.opset() >= input_since;
  if (as_input && in.attrs().has(attribute)) {
    return in.error(fmt::format(
        "\"{}\" is an attribute, but at opset {} it is input {} (an attribute below {})", attribute,
        in.opset(), i, input_since));
  }
  if (!as_input) {
    if (in.has(i)) {
      return in.error(
          fmt::format("has input {}, but at opset {} \"{}\" is an attribute (an input from {})", i,
                      in.opset(), attribute, input_since));
    }
    out.given = in.attrs().has(attribute);
    if (out.given) {
      out.values = in.attrs().get_ints(attribute);
      out.count = out.values->size();
    }
    return out;
  }
  out.given = in.has(i);
  if (!out.given) return out;
  MST_TRY_VOID(in.expect_types(i, attribute, types::kIndex));
  MST_TRY_VOID(in.expect_rank(i, attribute, 0, 1));
  out.values = in.ints(i);
  if (out.values) {
    out.count = out.values->size();
  } else if (const Dims* d = in.dims(i)) {
    if (d->empty()) out.count = 1;
    if (d->size() == 1 && (*d)[0].known()) out.count = static_cast<std::size_t>(*(*d)[0].value);
  }
  return out;
}

Dim times(const Dim& a, const Dim& b) {
  if (a.known() && *a.value == 1) return b;
  if (b.known() && *b.value == 1) return a;
  if ((a.known() && *a.value == 0) || (b.known() && *b.value == 0)) return Dim::of(0);
  if (!a.known() || !b.known()) return Dim{};
  if (*a.value > kLargest / *b.value) return Dim::of(kLargest);
  return Dim::of(*a.value * *b.value);
}

Dim plus(const Dim& a, std::int64_t b) {
  if (b == 0) return a;
  return a.known() ? Dim::of(b > kLargest - std::min(*a.value, kLargest) ? kLargest : *a.value + b)
                   : Dim{};
}

Dim plus(const Dim& a, const Dim& b) {
  if (a.known() && *a.value == 0) return b;
  return b.known() ? plus(a, *b.value) : Dim{};
}

Result<void> expect_usable_rank(const Operands& in, std::size_t rank) {
  if (rank <= kMostAxes) return {};
  return in.error(fmt::format("gives {} axes, allowed are {}", rank, kMostAxes));
}

std::optional<std::size_t> rank_from(const Operands& in, std::size_t i) {
  const Dims* d = in.dims(i);
  if (d == nullptr || d->size() != 1 || !(*d)[0].known() ||
      *(*d)[0].value > static_cast<std::int64_t>(kMostAxes)) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(*(*d)[0].value);
}

Dims anonymous(std::size_t rank) { return Dims(rank); }

Dim product(const Dims& dims, std::size_t first, std::size_t last) {
  Dim out = Dim::of(1);
  for (std::size_t i = first; i < last; ++i) {
    if (dims[i].known() && *dims[i].value == 0) return Dim::of(0);
  }
  for (std::size_t i = first; i < last; ++i) out = times(out, dims[i]);
  return out;
}

std::string to_string(const Dims& dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) out += ',';
    if (i == kMostPrinted) return out + "..]";
    out += dims[i].known()          ? fmt::format("{}", *dims[i].value)
           : dims[i].symbol.empty() ? "?"
                                    : dims[i].symbol;
  }
  return out + "]";
}

std::string to_string(const std::vector<std::int64_t>& numbers) {
  std::string out = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i != 0) out += ',';
    if (i == kMostPrinted) return out + "..]";
    out += fmt::format("{}", numbers[i]);
  }
  return out + "]";
}

TensorDesc unknown(DType dtype) {
  TensorDesc desc;
  desc.dtype = dtype;
  return desc;
}

TensorDesc described(DType dtype, Dims dims) {
  TensorDesc desc;
  desc.dtype = dtype;
  desc.shape = std::move(dims);
  return desc;
}

Result<Dims> broadcast(const Operands& in, const Dims& a, const Dims& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Dims out(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim x = i + a.size() >= rank ? a[i + a.size() - rank] : Dim::of(1);
    const Dim y = i + b.size() >= rank ? b[i + b.size() - rank] : Dim::of(1);
    if (x.known() && *x.value == 1) {
      out[i] = y;
    } else if (y.known() && *y.value == 1) {
      out[i] = x;
    } else if (x.known() && y.known()) {
      if (*x.value != *y.value) {
        return in.error(
            fmt::format("shapes {} and {} do not broadcast: {} against {} on axis {} of {}",
                        to_string(a), to_string(b), *x.value, *y.value, i, rank));
      }
      out[i] = x;
    } else if (x.known()) {
      out[i] = x;  // the unknown one is 1 or the same
    } else if (y.known()) {
      out[i] = y;
    } else if (!x.symbol.empty() && x.symbol == y.symbol) {
      out[i] = x;
    }
  }
  return out;
}

Result<std::optional<Dims>> broadcast(const Operands& in,
                                      std::initializer_list<std::size_t> inputs) {
  std::optional<Dims> out = Dims{};
  for (const std::size_t i : inputs) {
    if (!in.has(i)) continue;
    const Dims* d = in.dims(i);
    if (d == nullptr) return std::optional<Dims>();
    MST_TRY(out, broadcast(in, *out, *d));
  }
  return out;
}

Result<std::optional<Dims>> broadcast_all(const Operands& in) {
  std::optional<Dims> out = Dims{};
  for (std::size_t i = 0; i < in.count(); ++i) {
    const Dims* d = in.dims(i);
    if (d == nullptr) return std::optional<Dims>();
    MST_TRY(out, broadcast(in, *out, *d));
  }
  return out;
}

Result<void> expect_numpy_alignment(const Operands& in) {
  if (in.opset() >= 7 || in.attrs().get_int("broadcast", 0) == 0 || !in.attrs().has("axis"))
    return {};
  const Dims* a = in.dims(0);
  const Dims* b = in.dims(1);
  if (a == nullptr || b == nullptr) return {};
  MST_TRY(const std::size_t axis, in.axis(in.attrs().get_int("axis", 0), a->size()));
  const Dim all = product(*b, 0, b->size());
  if (axis + b->size() == a->size() || (all.known() && *all.value == 1)) return {};
  return in.unsupported(fmt::format("aligns B {} at axis {} of A {}, expected at its last axes",
                                    to_string(*b), axis, to_string(*a)));
}

Result<void> expect_broadcasts_to(const Operands& in, std::string_view what, const Dims& from,
                                  const Dims& to) {
  bool fits = from.size() <= to.size();
  for (std::size_t i = 0; fits && i < from.size(); ++i) {
    const Dim& f = from[i];
    const Dim& t = to[to.size() - from.size() + i];
    if (f.known() && *f.value != 1 && t.known() && *t.value != *f.value) fits = false;
  }
  if (fits) return {};
  return in.error(fmt::format("{} has shape {}, which does not broadcast to {}", what,
                              to_string(from), to_string(to)));
}

Result<std::vector<std::size_t>> sorted_axes(const Operands& in,
                                             const std::vector<std::int64_t>& axes,
                                             std::size_t rank) {
  std::vector<std::size_t> out;
  for (const std::int64_t a : axes) {
    MST_TRY(const std::size_t axis, in.axis(a, rank));
    out.push_back(axis);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    return in.error(fmt::format("axes {} name one axis twice", to_string(axes)));
  }
  return out;
}

Result<std::vector<Window>> windows(const Operands& in, const Dims& spatial,
                                    const std::vector<std::int64_t>& kernel) {
  const std::size_t n = spatial.size();
  const auto list = [&](std::string_view name, std::size_t length, std::int64_t least,
                        std::int64_t otherwise) -> Result<std::vector<std::int64_t>> {
    if (!in.attrs().has(name)) return std::vector<std::int64_t>(length, otherwise);
    std::vector<std::int64_t> values = in.attrs().get_ints(name);
    if (values.size() != length) {
      return in.error(fmt::format("{} has {} entries, expected {} for {} spatial axes", name,
                                  values.size(), length, n));
    }
    for (const std::int64_t v : values) {
      if (v < least || v > (std::int64_t{1} << 31)) {
        return in.error(
            fmt::format("{} {} holds {}, expected {} to 2^31", name, to_string(values), v, least));
      }
    }
    return values;
  };
  MST_TRY(const std::vector<std::int64_t> strides, list("strides", n, 1, 1));
  MST_TRY(const std::vector<std::int64_t> dilations, list("dilations", n, 1, 1));
  MST_TRY(const std::vector<std::int64_t> pads, list("pads", 2 * n, 0, 0));
  if (kernel.size() != n) {
    return in.error(fmt::format("kernel_shape has {} entries, expected {}", kernel.size(), n));
  }
  const std::string auto_pad = in.attrs().get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "VALID" && auto_pad != "NOTSET" && !auto_pad.empty()) {
    return in.error(fmt::format(
        "auto_pad is \"{}\", expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", auto_pad));
  }
  std::vector<Window> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (kernel[i] < 1 || kernel[i] > (std::int64_t{1} << 31) ||
        dilations[i] > (std::int64_t{1} << 30)) {
      return in.error(fmt::format("kernel_shape {} with dilations {} is not usable on axis {}",
                                  to_string(kernel), to_string(dilations), i));
    }
    Window& w = out[i];
    w.kernel = kernel[i];
    w.stride = strides[i];
    w.dilation = dilations[i];
    if (same) {
      if (!spatial[i].known()) continue;
      const std::int64_t outputs = ceil_div(*spatial[i].value, w.stride);
      const std::int64_t total =
          std::max<std::int64_t>(0, (outputs - 1) * w.stride + w.span() - *spatial[i].value);
      const std::int64_t small = total / 2;
      w.pad_begin = auto_pad == "SAME_UPPER" ? small : total - small;
      w.pad_end = total - w.pad_begin;
    } else if (auto_pad != "VALID") {
      w.pad_begin = pads[i];
      w.pad_end = pads[i + n];
    }
  }
  return out;
}

Result<Dim> window_count(const Operands& in, const Dim& length, const Window& w, bool ceil) {
  if (!length.known()) return Dim{};
  const std::string auto_pad = in.attrs().get_string("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER")
    return Dim::of(ceil_div(*length.value, w.stride));
  const std::int64_t room = std::min(*length.value, kLargest) + w.pad_begin + w.pad_end - w.span();
  if (room < 0) {
    return in.error(
        fmt::format("a window spanning {} does not fit {} elements with padding {} and {}",
                    w.span(), *length.value, w.pad_begin, w.pad_end));
  }
  std::int64_t count = room / w.stride + 1;
  if (ceil && auto_pad != "VALID") {
    count = ceil_div(room, w.stride) + 1;
    if ((count - 1) * w.stride >= *length.value + w.pad_begin) --count;
  }
  return Dim::of(count);
}

}  // namespace millstream
