// SPDX-License-Identifier: Apache-2.0
// Tensors of any floating type read and written as float or double: f32, f16 and bf16 compute in float,
// f64 in double.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "millstream/graph/tensor.h"
#include "millstream/kernels/half.h"

namespace millstream {

inline bool is_real(DType type) {
  return type == DType::f32 || type == DType::f64 || type == DType::f16 || type == DType::bf16;
}

/// Calls f(float{}) for f32, f16, bf16 and f(double{}) for f64. The type must be real.
template <class F>
decltype(auto) with_real(DType type, F&& f) {
  return type == DType::f64 ? f(double{}) : f(float{});
}

/// Read access; converts once when the stored type is another.
template <class T>
class RealIn {
 public:
  explicit RealIn(const Tensor& tensor) {
    const DType type = tensor.dtype();
    if ((type == DType::f32 && std::is_same_v<T, float>) ||
        (type == DType::f64 && std::is_same_v<T, double>)) {
      data_ = reinterpret_cast<const T*>(tensor.bytes());
      return;
    }
    const auto n = static_cast<std::size_t>(tensor.elements());
    own_.resize(n);
    if (type == DType::f32) {
      for (std::size_t i = 0; i < n; ++i) own_[i] = static_cast<T>(tensor.as<float>()[i]);
    } else if (type == DType::f64) {
      for (std::size_t i = 0; i < n; ++i) own_[i] = static_cast<T>(tensor.as<double>()[i]);
    } else if (type == DType::f16) {
      for (std::size_t i = 0; i < n; ++i) own_[i] = static_cast<T>(f16_to_f32(tensor.as<std::uint16_t>()[i]));
    } else {
      MST_CHECK(type == DType::bf16, "a real element type");
      for (std::size_t i = 0; i < n; ++i) own_[i] = static_cast<T>(bf16_to_f32(tensor.as<std::uint16_t>()[i]));
    }
    data_ = own_.data();
  }
  RealIn(const RealIn&) = delete;
  RealIn& operator=(const RealIn&) = delete;
  const T* data() const { return data_; }
  const T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  std::vector<T> own_;
  const T* data_ = nullptr;
};

/// Write access; what was written reaches the tensor when this ends.
template <class T>
class RealOut {
 public:
  explicit RealOut(Tensor& tensor) : tensor_(tensor) {
    const DType type = tensor.dtype();
    if ((type == DType::f32 && std::is_same_v<T, float>) ||
        (type == DType::f64 && std::is_same_v<T, double>)) {
      data_ = reinterpret_cast<T*>(tensor.mutable_bytes());
    } else {
      own_.resize(static_cast<std::size_t>(tensor.elements()));
      data_ = own_.data();
    }
  }
  ~RealOut() {
    const DType type = tensor_.dtype();
    for (std::size_t i = 0; i < own_.size(); ++i) {
      if (type == DType::f16) {
        tensor_.as_mutable<std::uint16_t>()[i] = f32_to_f16(static_cast<float>(own_[i]));
      } else if (type == DType::bf16) {
        tensor_.as_mutable<std::uint16_t>()[i] = f32_to_bf16(static_cast<float>(own_[i]));
      } else if (type == DType::f32) {
        tensor_.as_mutable<float>()[i] = static_cast<float>(own_[i]);
      } else if (type == DType::f64) {
        tensor_.as_mutable<double>()[i] = static_cast<double>(own_[i]);
      }
    }
  }
  RealOut(const RealOut&) = delete;
  RealOut& operator=(const RealOut&) = delete;
  T* data() { return data_; }
  T& operator[](std::int64_t i) { return data_[i]; }

 private:
  Tensor& tensor_;
  std::vector<T> own_;
  T* data_ = nullptr;
};

}  // namespace millstream
