// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/tensor.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "millstream/core/large_pages.h"

namespace millstream {
namespace {

struct TypeRow {
  std::string_view name;
  std::size_t bits;
};

// Indexed by DType.
constexpr std::array<TypeRow, 27> kTypes = {{
    {"?", 0},           {"f32", 32},        {"u8", 8},      {"i8", 8},      {"u16", 16},
    {"i16", 16},        {"i32", 32},        {"i64", 64},    {"string", 0},  {"bool", 8},
    {"f16", 16},        {"f64", 64},        {"u32", 32},    {"u64", 64},    {"c64", 64},
    {"c128", 128},      {"bf16", 16},       {"f8e4m3fn", 8}, {"f8e4m3fnuz", 8}, {"f8e5m2", 8},
    {"f8e5m2fnuz", 8},  {"u4", 4},          {"i4", 4},      {"f4e2m1", 4},  {"f8e8m0", 8},
    {"u2", 2},          {"i2", 2},
}};

std::int64_t product(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return n;
}

}  // namespace

std::string_view dtype_name(DType type) { return kTypes[static_cast<std::size_t>(type)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 1; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::size_t dtype_bits(DType type) { return kTypes[static_cast<std::size_t>(type)].bits; }

std::size_t dtype_bytes(DType type, std::size_t elements) {
  return (dtype_bits(type) * elements + 7) / 8;
}

TensorDesc TensorDesc::of(DType type, std::span<const std::int64_t> dims) {
  TensorDesc desc;
  desc.dtype = type;
  desc.shape.emplace();
  for (const std::int64_t d : dims) desc.shape->push_back(Dim::of(d));
  return desc;
}

bool TensorDesc::is_static() const {
  if (dtype == DType::undefined || !shape) return false;
  for (const Dim& d : *shape) {
    if (!d.known()) return false;
  }
  return true;
}

std::vector<std::int64_t> TensorDesc::dims() const {
  MST_CHECK(is_static(), "dims() of a dynamic desc");
  std::vector<std::int64_t> out;
  for (const Dim& d : *shape) out.push_back(*d.value);
  return out;
}

std::optional<std::int64_t> TensorDesc::elements() const {
  if (!is_static()) return std::nullopt;
  std::int64_t n = 1;
  for (const Dim& d : *shape) {
    if (*d.value < 0) return std::nullopt;
    if (*d.value == 0) return 0;
  }
  for (const Dim& d : *shape) {
    if (n > (std::int64_t{1} << 62) / *d.value) return std::nullopt;
    n *= *d.value;
  }
  return n;
}

std::optional<std::uint64_t> TensorDesc::bytes() const {
  const auto n = elements();
  if (!n || *n > (std::int64_t{1} << 56)) return std::nullopt;
  return dtype_bytes(dtype, static_cast<std::size_t>(*n));
}

std::string to_string(const TensorDesc& desc) {
  std::string out(dtype_name(desc.dtype));
  if (!desc.shape) return out + "[...]";
  out += '[';
  bool first = true;
  for (const Dim& d : *desc.shape) {
    if (!first) out += ',';
    first = false;
    if (d.known()) {
      out += fmt::format("{}", *d.value);
    } else {
      out += d.symbol.empty() ? "?" : d.symbol;
    }
  }
  return out + ']';
}

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), elements_(product(shape_)) {
  const std::size_t size = (byte_size() + 63) / 64 * 64;
  auto* raw = static_cast<std::byte*>(std::aligned_alloc(64, size == 0 ? 64 : size));
  if (raw == nullptr) throw std::bad_alloc();  // as a container would; run and import turn it into E34
  prefer_large_pages(raw, size);
  std::memset(raw, 0, size == 0 ? 64 : size);
  bytes_ = std::shared_ptr<const std::byte>(raw, [](const std::byte* p) { std::free(const_cast<std::byte*>(p)); });
}

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape, std::shared_ptr<const std::byte> bytes)
    : dtype_(dtype), shape_(std::move(shape)), elements_(product(shape_)), bytes_(std::move(bytes)) {}

Tensor Tensor::reshaped(std::vector<std::int64_t> shape) const {
  MST_CHECK(product(shape) == elements_, "reshaped() keeps the number of elements");
  return Tensor(dtype_, std::move(shape), bytes_);
}

bool operator==(const Tensor& a, const Tensor& b) {
  return a.dtype_ == b.dtype_ && a.shape_ == b.shape_ &&
         (a.byte_size() == 0 || std::memcmp(a.bytes(), b.bytes(), a.byte_size()) == 0);
}

}  // namespace millstream
