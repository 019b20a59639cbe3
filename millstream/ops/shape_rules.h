// SPDX-License-Identifier: Apache-2.0
// The rules that shape functions share: reading operands, axes, broadcast, windows, integer lists.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/ops/op.h"

namespace millstream {

using Dims = std::vector<Dim>;
using Descs = Result<std::vector<TensorDesc>>;

/// A set of element types, one bit per DType.
struct TypeSet {
  std::uint32_t bits = 0;
  constexpr TypeSet() = default;
  constexpr explicit TypeSet(std::uint32_t b) : bits(b) {}
  constexpr TypeSet(std::initializer_list<DType> types) {
    for (const DType t : types) bits |= 1u << static_cast<unsigned>(t);
  }
  constexpr bool has(DType t) const { return (bits >> static_cast<unsigned>(t) & 1u) != 0; }
  friend constexpr TypeSet operator|(TypeSet a, TypeSet b) { return TypeSet(a.bits | b.bits); }
  friend constexpr bool operator==(TypeSet, TypeSet) = default;
};

namespace types {
inline constexpr TypeSet kFloat = {DType::f16, DType::f32, DType::f64, DType::bf16};
inline constexpr TypeSet kSigned = {DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr TypeSet kUnsigned = {DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr TypeSet kInteger = kSigned | kUnsigned;
inline constexpr TypeSet kNumeric = kFloat | kInteger;
inline constexpr TypeSet kBool = {DType::boolean};
inline constexpr TypeSet kFloat8 = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
                                    DType::f8e5m2fnuz};
inline constexpr TypeSet kIndex = {DType::i32, DType::i64};
inline constexpr TypeSet kInt64 = {DType::i64};
inline constexpr TypeSet kAny = TypeSet(~1u);
}  // namespace types

/// Reads one node's operands and words its errors. Whatever is unknown passes every check.
class Operands {
 public:
  explicit Operands(const ShapeContext& context) : c_(context) {}

  std::size_t count() const { return c_.inputs.size(); }
  bool has(std::size_t i) const { return i < c_.inputs.size() && c_.inputs[i] != nullptr; }
  /// undefined when absent or unknown.
  DType dtype(std::size_t i) const { return has(i) ? c_.inputs[i]->dtype : DType::undefined; }
  /// Null when absent or of unknown rank.
  const Dims* dims(std::size_t i) const {
    return has(i) && c_.inputs[i]->shape ? &*c_.inputs[i]->shape : nullptr;
  }
  /// An unknown desc when absent.
  TensorDesc desc(std::size_t i) const { return has(i) ? *c_.inputs[i] : TensorDesc{}; }
  const Tensor* value(std::size_t i) const { return i < c_.values.size() ? c_.values[i] : nullptr; }
  const Attrs& attrs() const { return c_.attrs; }
  int opset() const { return c_.opset; }
  std::size_t outputs() const { return c_.output_count; }
  std::string_view type() const { return c_.type; }

  /// `Type "node": what`, ErrorCode::shape.
  Error error(std::string what) const;
  /// The same wording for what the operator allows but we do not follow
  /// (ErrorCode::unsupported_operator).
  Error unsupported(std::string what) const;
  Result<void> expect_rank(std::size_t i, std::string_view what, std::size_t least,
                           std::size_t most) const;
  Result<void> expect_types(std::size_t i, std::string_view what, TypeSet allowed) const;
  /// The one element type of these inputs; undefined when none is known.
  Result<DType> common_dtype(std::initializer_list<std::size_t> inputs) const;
  /// Axis counted from the front; allowed are [-rank, rank).
  Result<std::size_t> axis(std::int64_t axis, std::size_t rank) const;
  /// Both must be the same number; the better known of the two.
  Result<Dim> same(const Dim& a, const Dim& b, std::string_view what) const;

  /// Elements of an integer input (i32, i64 and narrower) as int64; nullopt when not known.
  std::optional<std::vector<std::int64_t>> ints(std::size_t i) const;
  std::optional<std::int64_t> scalar_int(std::size_t i) const;
  /// First element of a float or integer input.
  std::optional<double> scalar(std::size_t i) const;
  std::optional<std::vector<double>> floats(std::size_t i) const;

 private:
  const ShapeContext& c_;
};

/// An integer list that older operator sets hold as an attribute and newer ones read as an input.
struct IntList {
  bool given = false;
  std::optional<std::vector<std::int64_t>> values;  ///< unknown until the run when nullopt
  std::optional<std::size_t> count;                 ///< length, known more often than the values
};
/// Attribute below `input_since`, input `i` from there on. The other form is an error.
Result<IntList> int_list(const Operands& in, std::string_view attribute, std::size_t i,
                         int input_since);

// -- dimensions
/// Arithmetic on dimensions: anonymous unless determined (x * 1, x + 0 keep a symbol); results
/// beyond 2^62 stay at 2^62, and the size limits refuse such a tensor by name.
Dim times(const Dim& a, const Dim& b);
Dim plus(const Dim& a, std::int64_t b);
Dim plus(const Dim& a, const Dim& b);
Dims anonymous(std::size_t rank);
/// Product of a range of dimensions; anonymous when unknown, unless a factor is 0.
Dim product(const Dims& dims, std::size_t first, std::size_t last);
std::string to_string(const Dims& dims);
/// "Conv" style list of numbers for messages: [1, 2].
std::string to_string(const std::vector<std::int64_t>& numbers);

/// No tensor of use has more axes. Without a bound, operators that add ranks up (a Gather of a
/// Gather of ..) let a small file ask for any amount of memory.
inline constexpr std::size_t kMostAxes = 64;
Result<void> expect_usable_rank(const Operands& in, std::size_t rank);
/// The rank that a shape input (a vector with one entry an axis) gives its result: from its length,
/// even when its values are not known. nullopt when unknown or beyond kMostAxes.
std::optional<std::size_t> rank_from(const Operands& in, std::size_t i);

TensorDesc unknown(DType dtype);
TensorDesc described(DType dtype, Dims dims);

/// Numpy broadcast of all inputs in [first, last): nullopt when some rank is unknown.
Result<std::optional<Dims>> broadcast(const Operands& in,
                                      std::initializer_list<std::size_t> inputs);
Result<std::optional<Dims>> broadcast_all(const Operands& in);
/// One pair; `what` goes into the message.
Result<Dims> broadcast(const Operands& in, const Dims& a, const Dims& b);
/// Operator sets below 7 align B at an axis of A instead; error where that differs from numpy's
/// rule.
Result<void> expect_numpy_alignment(const Operands& in);
/// Error unless `from` broadcasts to exactly `to` (one-sided).
Result<void> expect_broadcasts_to(const Operands& in, std::string_view what, const Dims& from,
                                  const Dims& to);

/// Axes counted from the front, sorted, without duplicates (a duplicate is an error).
Result<std::vector<std::size_t>> sorted_axes(const Operands& in,
                                             const std::vector<std::int64_t>& axes,
                                             std::size_t rank);

// -- sliding windows (convolution, pooling)
struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin =
      0;  ///< resolved: auto_pad already turned into numbers where the input is known
  std::int64_t pad_end = 0;
  std::int64_t span() const { return (kernel - 1) * dilation + 1; }
};
/// One window per spatial axis from strides, dilations, pads and auto_pad. `spatial` are the
/// input's spatial dims, `kernel` one entry an axis. Errors: list of the wrong length, stride or
/// dilation < 1, negative pads, both auto_pad and pads.
Result<std::vector<Window>> windows(const Operands& in, const Dims& spatial,
                                    const std::vector<std::int64_t>& kernel);
/// Output length of one axis: floor, or with `ceil` the last window may start inside the input or
/// the left padding only (the same rule as ONNX and PyTorch).
Result<Dim> window_count(const Operands& in, const Dim& length, const Window& window, bool ceil);

// -- shape functions used by several families
/// Output 0 is described like input 0; `Allowed` limits its element type.
template <std::uint32_t AllowedBits>
Descs same_as_input(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "input", TypeSet(AllowedBits)));
  return std::vector<TensorDesc>(1, in.desc(0));
}

}  // namespace millstream
