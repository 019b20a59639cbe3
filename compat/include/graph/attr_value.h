// SPDX-License-Identifier: Apache-2.0
// An attribute of any of the types that operators have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../register/mst_pass_abi.h"
#include "ascend_string.h"
#include "ge_error_codes.h"
#include "tensor.h"

namespace ge __attribute__((visibility("hidden"))) {
namespace detail {

inline AscendString text_of(const mst_str& s) { return AscendString(s.data, s.size); }
inline mst_str str_of(const AscendString& s) { return mst_str{s.GetString(), s.GetLength()}; }

/// From the numbers of ONNX, which the loading program uses.
inline DataType type_of(std::int32_t onnx) {
  static const DataType types[] = {DT_UNDEFINED, DT_FLOAT,  DT_UINT8,  DT_INT8,   DT_UINT16,    DT_INT16,      DT_INT32, DT_INT64, DT_STRING,
                                   DT_BOOL,      DT_FLOAT16, DT_DOUBLE, DT_UINT32, DT_UINT64, DT_COMPLEX64, DT_COMPLEX128, DT_BF16};
  if (onnx == 22) return DT_INT4;
  if (onnx == 25) return DT_UINT2;
  if (onnx == 26) return DT_INT2;
  return onnx >= 0 && onnx < static_cast<std::int32_t>(sizeof types / sizeof types[0]) ? types[onnx] : DT_UNDEFINED;
}

inline Tensor tensor_of(const mst_tensor& t) {
  const TensorDesc desc(Shape(t.rank == 0 ? std::vector<std::int64_t>() : std::vector<std::int64_t>(t.dims, t.dims + t.rank)), FORMAT_ND,
                        type_of(t.dtype));
  return Tensor(desc, static_cast<const std::uint8_t*>(t.data), t.bytes);
}

}  // namespace detail

/// A value. Empty until it is set or read.
class AttrValue {
 public:
  AttrValue() = default;
  void SetAttrValue(std::int64_t v) { reset(MST_ATTR_INT).int_ = v; }
  void SetAttrValue(float v) { reset(MST_ATTR_FLOAT).float_ = v; }
  void SetAttrValue(const AscendString& v) { reset(MST_ATTR_STRING).string_ = v; }
  void SetAttrValue(const std::vector<std::int64_t>& v) { reset(MST_ATTR_INTS).ints_ = v; }
  void SetAttrValue(const std::vector<float>& v) { reset(MST_ATTR_FLOATS).floats_ = v; }
  void SetAttrValue(const std::vector<AscendString>& v) { reset(MST_ATTR_STRINGS).strings_ = v; }
  void SetAttrValue(const Tensor& v) { reset(MST_ATTR_TENSOR).tensor_ = v; }

  // Failure where the value is of another type; numbers that do not fit their type count as such.
  graphStatus GetAttrValue(std::int64_t& v) const { return give(MST_ATTR_INT, int_, v); }
  graphStatus GetAttrValue(std::int32_t& v) const { return narrow(v); }
  graphStatus GetAttrValue(std::uint32_t& v) const { return narrow(v); }
  graphStatus GetAttrValue(bool& v) const { return narrow(v); }
  graphStatus GetAttrValue(float& v) const { return give(MST_ATTR_FLOAT, float_, v); }
  graphStatus GetAttrValue(AscendString& v) const { return give(MST_ATTR_STRING, string_, v); }
  graphStatus GetAttrValue(Tensor& v) const { return give(MST_ATTR_TENSOR, tensor_, v); }
  /// From the number of the type in the graph's own encoding (ge::DataType).
  graphStatus GetAttrValue(DataType& v) const {
    std::int32_t number = 0;
    if (narrow(number) != GRAPH_SUCCESS || number < 0 || number > DT_UINT2) return GRAPH_FAILED;
    v = static_cast<DataType>(number);
    return GRAPH_SUCCESS;
  }
  graphStatus GetAttrValue(std::vector<std::int64_t>& v) const { return give(MST_ATTR_INTS, ints_, v); }
  graphStatus GetAttrValue(std::vector<std::int32_t>& v) const { return narrow_all(v); }
  graphStatus GetAttrValue(std::vector<std::uint32_t>& v) const { return narrow_all(v); }
  graphStatus GetAttrValue(std::vector<bool>& v) const { return narrow_all(v); }
  graphStatus GetAttrValue(OpBytes& v) const { return narrow_all(v); }
  graphStatus GetAttrValue(std::vector<float>& v) const { return give(MST_ATTR_FLOATS, floats_, v); }
  graphStatus GetAttrValue(std::vector<AscendString>& v) const { return give(MST_ATTR_STRINGS, strings_, v); }
  graphStatus GetAttrValue(std::vector<DataType>& v) const {
    std::vector<DataType> types;
    for (const std::int64_t number : ints_) {
      if (number < 0 || number > DT_UINT2) return GRAPH_FAILED;
      types.push_back(static_cast<DataType>(number));
    }
    return give(MST_ATTR_INTS, types, v);
  }
  // Lists of these do not occur in graphs of millstream.
  graphStatus GetAttrValue(std::vector<Tensor>&) const { return GRAPH_FAILED; }
  graphStatus GetAttrValue(std::vector<std::vector<std::int64_t>>&) const { return GRAPH_FAILED; }

 private:
  AttrValue& reset(int kind) {
    *this = AttrValue();
    kind_ = kind;
    return *this;
  }
  template <class T>
  graphStatus give(int kind, const T& from, T& to) const {
    if (kind_ != kind) return GRAPH_FAILED;
    to = from;
    return GRAPH_SUCCESS;
  }
  template <class T>
  graphStatus narrow(T& v) const {
    if (kind_ != MST_ATTR_INT || static_cast<std::int64_t>(static_cast<T>(int_)) != int_) return GRAPH_FAILED;
    v = static_cast<T>(int_);
    return GRAPH_SUCCESS;
  }
  template <class T>
  graphStatus narrow_all(std::vector<T>& v) const {
    std::vector<T> all;
    for (const std::int64_t number : ints_) {
      if (static_cast<std::int64_t>(static_cast<T>(number)) != number) return GRAPH_FAILED;
      all.push_back(static_cast<T>(number));
    }
    return give(MST_ATTR_INTS, all, v);
  }

  int kind_ = 0;
  std::int64_t int_ = 0;
  float float_ = 0;
  AscendString string_;
  std::vector<std::int64_t> ints_;
  std::vector<float> floats_;
  std::vector<AscendString> strings_;
  Tensor tensor_;
};

}  // namespace ge
