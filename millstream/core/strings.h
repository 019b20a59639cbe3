// SPDX-License-Identifier: Apache-2.0
// Interned strings: equal texts share one id, ids are dense in order of first appearance.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "millstream/core/id.h"

namespace millstream {

using StringId = Id<struct StringTag>;

/// Texts lie in one arena; about 12 bytes a string beside its own bytes. Not for concurrent writers.
class StringPool {
 public:
  StringId intern(std::string_view text);
  std::optional<StringId> find(std::string_view text) const;
  std::string_view operator[](StringId id) const {
    const std::uint64_t begin = offsets_[id.index];
    return {bytes_.data() + begin, static_cast<std::size_t>(offsets_[id.index + 1] - begin)};
  }
  std::size_t size() const { return offsets_.size() - 1; }

 private:
  std::size_t probe(std::string_view text, std::uint32_t hash) const;
  void grow();

  std::vector<char> bytes_;
  std::vector<std::uint64_t> offsets_ = {0};
  std::vector<std::uint32_t> slots_;  // open addressing, id + 1, 0 = empty; power of two, at most 3/4 full
};

}  // namespace millstream
