// SPDX-License-Identifier: Apache-2.0
// Typed dense ids and tables indexed by them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace millstream {

/// An index into one kind of table. Ids of different kinds do not mix; absence is `std::optional<Id>`.
template <class Tag>
struct Id {
  std::uint32_t index = 0;
  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// A vector indexed by one kind of id.
template <class IdT, class T>
class IdVec {
 public:
  IdVec() = default;
  explicit IdVec(std::size_t size, const T& value = T()) : items_(size, value) {}

  decltype(auto) operator[](IdT id) { return items_[id.index]; }
  decltype(auto) operator[](IdT id) const { return items_[id.index]; }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(std::size_t size, const T& value = T()) { items_.resize(size, value); }
  void reserve(std::size_t size) { items_.reserve(size); }
  IdT push_back(T value) {
    items_.push_back(std::move(value));
    return IdT(items_.size() - 1);
  }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  const std::vector<T>& raw() const { return items_; }
  std::vector<T>& raw() { return items_; }
  friend bool operator==(const IdVec&, const IdVec&) = default;

 private:
  std::vector<T> items_;
};

/// Half-open range of consecutive ids, for `for (NodeId n : ids<NodeId>(count))`.
template <class IdT>
class IdRange {
 public:
  class Iterator {
   public:
    using value_type = IdT;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using pointer = const IdT*;
    using reference = IdT;
    explicit Iterator(std::size_t i) : i_(i) {}
    IdT operator*() const { return IdT(i_); }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    std::size_t i_;
  };
  IdRange(std::size_t first, std::size_t last) : first_(first), last_(last) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(last_); }
  std::size_t size() const { return last_ - first_; }
  bool empty() const { return first_ == last_; }
  IdT operator[](std::size_t i) const { return IdT(first_ + i); }

 private:
  std::size_t first_;
  std::size_t last_;
};

template <class IdT>
IdRange<IdT> ids(std::size_t count) {
  return IdRange<IdT>(0, count);
}

}  // namespace millstream

template <class Tag>
struct std::hash<millstream::Id<Tag>> {
  std::size_t operator()(millstream::Id<Tag> id) const noexcept { return id.index; }
};
