// SPDX-License-Identifier: Apache-2.0
// Descriptions of tensors, and constants. Values: what a pass does to them stays with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ascend_string.h"
#include "ge_error_codes.h"
#include "types.h"

namespace ge __attribute__((visibility("hidden"))) {

class Shape {
 public:
  Shape() = default;
  explicit Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}
  std::vector<std::int64_t> GetDims() const { return dims_; }
  std::size_t GetDimNum() const { return dims_.size(); }
  std::int64_t GetDim(std::size_t i) const { return i < dims_.size() ? dims_[i] : 0; }
  /// Product of the dimensions, -1 where one is not known, 0 for a scalar.
  std::int64_t GetShapeSize() const {
    if (dims_.empty()) return 0;
    std::int64_t size = 1;
    for (const std::int64_t d : dims_) {
      if (d < 0) return -1;
      if (d != 0 && size > INT64_MAX / d) return -1;
      size *= d;
    }
    return size;
  }

 private:
  std::vector<std::int64_t> dims_;
};

/// A shape of unknown rank has the one dimension -2, an unknown dimension is -1.
class TensorDesc {
 public:
  TensorDesc() = default;
  explicit TensorDesc(Shape shape, Format format = FORMAT_ND, DataType type = DT_FLOAT)
      : shape_(std::move(shape)), format_(format), type_(type) {}
  Shape GetShape() const { return shape_; }
  Shape GetOriginShape() const { return shape_; }
  Format GetFormat() const { return format_; }
  Format GetOriginFormat() const { return format_; }
  DataType GetDataType() const { return type_; }
  graphStatus GetName(AscendString& name) const {
    name = name_;
    return GRAPH_SUCCESS;
  }
  void SetName(const char* name) { name_ = AscendString(name); }

 private:
  Shape shape_;
  Format format_ = FORMAT_ND;
  DataType type_ = DT_FLOAT;
  AscendString name_;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(const TensorDesc& desc, const std::uint8_t* data, std::size_t size) : desc_(desc) {
    if (size != 0) data_.assign(data, data + size);
  }
  TensorDesc GetTensorDesc() const { return desc_; }
  const std::uint8_t* GetData() const { return data_.data(); }
  std::uint8_t* GetData() { return data_.data(); }
  std::size_t GetSize() const { return data_.size(); }

 private:
  TensorDesc desc_;
  std::vector<std::uint8_t> data_;
};

}  // namespace ge
