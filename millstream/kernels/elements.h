// SPDX-License-Identifier: Apache-2.0
// From an element type known at run time to a C++ type: sets of types, dispatch, refusals.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>

#include "millstream/kernels/function_kernel.h"
#include "millstream/kernels/half.h"

namespace millstream {

/// One bit per DType.
using ElementSet = std::uint32_t;
constexpr ElementSet element_set(std::initializer_list<DType> types) {
  ElementSet set = 0;
  for (const DType t : types) set |= 1u << static_cast<unsigned>(t);
  return set;
}
constexpr bool contains(ElementSet set, DType t) { return (set >> static_cast<unsigned>(t) & 1u) != 0; }

namespace elements {
inline constexpr ElementSet kReal = element_set({DType::f32, DType::f64, DType::f16, DType::bf16});
inline constexpr ElementSet kSigned = element_set({DType::i8, DType::i16, DType::i32, DType::i64});
inline constexpr ElementSet kUnsigned = element_set({DType::u8, DType::u16, DType::u32, DType::u64});
inline constexpr ElementSet kInteger = kSigned | kUnsigned;
inline constexpr ElementSet kNumber = kReal | kInteger;
inline constexpr ElementSet kBool = element_set({DType::boolean});
inline constexpr ElementSet kIndex = element_set({DType::i32, DType::i64});
inline constexpr ElementSet kFloat8 =
    element_set({DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz});
inline constexpr ElementSet kFourBit = element_set({DType::u4, DType::i4, DType::f4e2m1});
/// Whole bytes an element: what a data-movement kernel takes.
inline constexpr ElementSet kWholeBytes = kNumber | kBool | kFloat8 |
                                          element_set({DType::c64, DType::c128, DType::f8e8m0});
}  // namespace elements

/// bool as stored: one byte, 0 or 1 (other values read as true).
struct Bool8 {
  std::uint8_t raw = 0;
  Bool8() = default;
  explicit Bool8(bool value) : raw(value ? 1 : 0) {}
  operator bool() const { return raw != 0; }  // NOLINT: a stored bool reads as one
};
static_assert(sizeof(Bool8) == 1);

template <class T>
struct Element {
  using Type = T;
};

/// The type in which an element computes: float for f16 and bf16.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, F16> || std::is_same_v<T, BF16>, float, T>;
template <class T>
inline constexpr bool kIsReal = std::is_floating_point_v<Wide<T>>;

/// Calls f(Element<T>{}) when `type` is in kSet and says whether it was.
template <ElementSet kSet, class F>
bool with_element(DType type, F&& f) {
#define MST_ELEMENT_CASE(name, T)                    \
  case DType::name:                                  \
    if constexpr (contains(kSet, DType::name)) {     \
      f(Element<T>{});                               \
      return true;                                   \
    }                                                \
    return false;
  switch (type) {
    MST_ELEMENT_CASE(f32, float)
    MST_ELEMENT_CASE(f64, double)
    MST_ELEMENT_CASE(f16, F16)
    MST_ELEMENT_CASE(bf16, BF16)
    MST_ELEMENT_CASE(i8, std::int8_t)
    MST_ELEMENT_CASE(i16, std::int16_t)
    MST_ELEMENT_CASE(i32, std::int32_t)
    MST_ELEMENT_CASE(i64, std::int64_t)
    MST_ELEMENT_CASE(u8, std::uint8_t)
    MST_ELEMENT_CASE(u16, std::uint16_t)
    MST_ELEMENT_CASE(u32, std::uint32_t)
    MST_ELEMENT_CASE(u64, std::uint64_t)
    MST_ELEMENT_CASE(boolean, Bool8)
    default: return false;
  }
#undef MST_ELEMENT_CASE
}

struct Bytes16 {
  std::uint64_t low;
  std::uint64_t high;
};
/// Calls f(Element<T>{}) with a plain type as wide as one element of `type`, when that is whole bytes.
template <class F>
bool with_width(DType type, F&& f) {
  switch (dtype_bits(type)) {
    case 8: f(Element<std::uint8_t>{}); return true;
    case 16: f(Element<std::uint16_t>{}); return true;
    case 32: f(Element<std::uint32_t>{}); return true;
    case 64: f(Element<std::uint64_t>{}); return true;
    case 128: f(Element<Bytes16>{}); return true;
    default: return false;
  }
}

/// The refusal of a node whose input `i` has an element type outside `allowed`; nothing while unknown.
inline std::optional<Error> refuse_element(const KernelSpec& spec, std::size_t i, ElementSet allowed) {
  if (!spec.has_input(i)) return std::nullopt;
  const DType type = spec.input_desc(i).dtype;
  if (type == DType::undefined || contains(allowed, type)) return std::nullopt;
  return unsupported_node(spec, fmt::format("input {} has element type {}", i, dtype_name(type)));
}
inline Error wrong_element(std::string_view node, DType type) {
  return kernel_failed(node, fmt::format("element type {} has no kernel", dtype_name(type)));
}
template <ElementSet kSet, class F>
Result<void> on_element(std::string_view node, DType type, F&& f) {
  if (!with_element<kSet>(type, f)) return wrong_element(node, type);
  return {};
}

/// An integer tensor (axes, shapes, indices, ...) as int64.
Result<std::vector<std::int64_t>> read_ints(std::string_view node, const Tensor& tensor);
/// First element of a number or bool tensor; error when it has none.
Result<double> read_scalar(std::string_view node, const Tensor& tensor);
/// Axis counted from the front; error outside [-rank, rank).
Result<std::size_t> resolve_axis(std::string_view node, std::int64_t axis, std::size_t rank);

}  // namespace millstream
