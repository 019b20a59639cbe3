// SPDX-License-Identifier: Apache-2.0
// Element types, tensor descriptions and host tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/core/check.h"

namespace millstream {

/// Element type. The numbers are ONNX TensorProto.DataType's (a public interface fact).
enum class DType : std::uint8_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};

/// "f32", "i64", "bool", ...: the spelling of the text format.
std::string_view dtype_name(DType type);
std::optional<DType> dtype_from_name(std::string_view name);
/// Bits of one element; 0 for string and undefined.
std::size_t dtype_bits(DType type);
/// Bytes of `elements` packed elements (4-bit types: two a byte, rounded up).
std::size_t dtype_bytes(DType type, std::size_t elements);

/// One dimension: a number, or a symbol that only a run (or --dim) binds. An empty symbol is anonymous.
struct Dim {
  std::optional<std::int64_t> value;
  std::string symbol;
  static Dim of(std::int64_t v) { return Dim{v, {}}; }
  static Dim named(std::string s) { return Dim{std::nullopt, std::move(s)}; }
  bool known() const { return value.has_value(); }
  friend bool operator==(const Dim&, const Dim&) = default;
};

/// Element type and shape of a value; no shape = unknown rank.
struct TensorDesc {
  DType dtype = DType::undefined;
  std::optional<std::vector<Dim>> shape;

  static TensorDesc of(DType type, std::span<const std::int64_t> dims);
  static TensorDesc of(DType type, std::initializer_list<std::int64_t> dims) {
    return of(type, std::span<const std::int64_t>(dims.begin(), dims.size()));
  }
  /// dtype and every dimension known.
  bool is_static() const;
  /// Dimensions of a static desc. Aborts when not static.
  std::vector<std::int64_t> dims() const;
  /// Product of the dimensions, if static and within 2^62.
  std::optional<std::int64_t> elements() const;
  std::optional<std::uint64_t> bytes() const;
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

/// "f32[1,3,N,?]"; an unknown rank prints as "f32[...]", an unknown type as "?".
std::string to_string(const TensorDesc& desc);

/// A host tensor: shape, element type and shared, 64-byte aligned, row-major bytes. Copies share the
/// bytes; who writes through `mutable_*` must be the only holder.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled. Dimensions must be >= 0 and the byte size representable.
  Tensor(DType dtype, std::vector<std::int64_t> shape);
  /// Over bytes owned elsewhere (for example a mapped file); `bytes` must hold byte_size().
  Tensor(DType dtype, std::vector<std::int64_t> shape, std::shared_ptr<const std::byte> bytes);

  DType dtype() const { return dtype_; }
  std::span<const std::int64_t> shape() const { return shape_; }
  std::int64_t elements() const { return elements_; }
  std::size_t byte_size() const { return dtype_bytes(dtype_, static_cast<std::size_t>(elements_)); }
  const std::byte* bytes() const { return bytes_.get(); }
  std::byte* mutable_bytes() { return const_cast<std::byte*>(bytes_.get()); }
  TensorDesc desc() const { return TensorDesc::of(dtype_, shape_); }
  /// Same bytes, other shape with as many elements.
  Tensor reshaped(std::vector<std::int64_t> shape) const;
  const std::shared_ptr<const std::byte>& storage() const { return bytes_; }

  /// Elements as T; sizeof(T) must fit the element type.
  template <class T>
  std::span<const T> as() const {
    MST_CHECK(sizeof(T) * 8 == dtype_bits(dtype_), "element size");
    return {reinterpret_cast<const T*>(bytes()), static_cast<std::size_t>(elements_)};
  }
  template <class T>
  std::span<T> as_mutable() {
    MST_CHECK(sizeof(T) * 8 == dtype_bits(dtype_), "element size");
    return {reinterpret_cast<T*>(mutable_bytes()), static_cast<std::size_t>(elements_)};
  }
  /// Same type, shape and bytes.
  friend bool operator==(const Tensor& a, const Tensor& b);

 private:
  DType dtype_ = DType::undefined;
  std::vector<std::int64_t> shape_;
  std::int64_t elements_ = 0;
  std::shared_ptr<const std::byte> bytes_;
};

}  // namespace millstream
