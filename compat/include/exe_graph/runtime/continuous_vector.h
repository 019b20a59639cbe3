// SPDX-License-Identifier: Apache-2.0
// A vector whose room is fixed when it is made, so that its elements stay where they are.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace gert {

template <class T>
class TypedContinuousVector {
  static_assert(std::is_trivially_copyable<T>::value, "elements are plain data");

 public:
  /// All elements are zero, the size is 0.
  explicit TypedContinuousVector(std::size_t capacity) : capacity_(capacity), data_(new T[capacity]()) {}
  TypedContinuousVector(const TypedContinuousVector &) = delete;
  TypedContinuousVector &operator=(const TypedContinuousVector &) = delete;

  std::size_t GetSize() const { return size_; }
  std::size_t GetCapacity() const { return capacity_; }
  /// False, with nothing changed, beyond the capacity.
  bool SetSize(std::size_t size) {
    if (size > capacity_) return false;
    size_ = size;
    return true;
  }
  const T *GetData() const { return data_.get(); }
  T *MutableData() { return data_.get(); }

 private:
  std::size_t size_ = 0;
  std::size_t capacity_;
  std::unique_ptr<T[]> data_;
};

}  // namespace gert
