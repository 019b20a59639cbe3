// SPDX-License-Identifier: Apache-2.0
// Rows of vector clocks, taken and given back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "millstream/core/check.h"

namespace millstream {

/// Rows of `width` entries in chunks that never move; a row given back is the next one taken. Contents of a
/// taken row are what its last owner left.
template <class Entry>
class ClockRows {
 public:
  explicit ClockRows(std::uint32_t width) : width_(width) {
    while (shift_ > 0 && (std::size_t{width} << shift_) > kEntriesAChunk) --shift_;
  }
  std::uint32_t width() const { return width_; }
  Entry* row(std::uint32_t id) { return chunks_[id >> shift_].get() + std::size_t{id & mask()} * width_; }
  std::uint32_t take() {
    std::uint32_t id = made_;
    if (free_.empty()) {
      if ((made_ & mask()) == 0) {
        chunks_.push_back(std::make_unique<Entry[]>(std::size_t{width_} << shift_));
      }
      ++made_;
      live_.push_back(1);
    } else {
      id = free_.back();
      free_.pop_back();
      live_[id] = 1;
    }
    return id;
  }
  void give_back(std::uint32_t id) {
    MST_CHECK(live_[id] == 1, "a clock row is given back once");
    live_[id] = 0;
    free_.push_back(id);
  }
  /// Rows ever made: the most that were alive at once.
  std::uint32_t made() const { return made_; }
  bool live(std::uint32_t id) const { return live_[id] == 1; }

 private:
  static constexpr std::size_t kEntriesAChunk = 1 << 16;
  std::uint32_t mask() const { return (1u << shift_) - 1; }

  std::uint32_t width_;
  std::uint32_t shift_ = 12;
  std::uint32_t made_ = 0;
  std::vector<std::unique_ptr<Entry[]>> chunks_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint8_t> live_;
};

}  // namespace millstream
