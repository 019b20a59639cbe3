// SPDX-License-Identifier: Apache-2.0
#include "millstream/core/strings.h"

namespace millstream {
namespace {

// FNV-1a, folded: fixed, so that nothing depends on a library's hash.
std::uint32_t hash_of(std::string_view text) {
  std::uint64_t h = 1469598103934665603ull;
  for (const char c : text) {
    h ^= static_cast<unsigned char>(c);
    h *= 1099511628211ull;
  }
  return static_cast<std::uint32_t>(h ^ (h >> 32));
}

}  // namespace

std::size_t StringPool::probe(std::string_view text, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot] != 0 && (*this)[StringId(slots_[slot] - 1)] != text) slot = (slot + 1) & mask;
  return slot;
}

void StringPool::grow() {
  slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, 0);
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string_view text = (*this)[StringId(i)];
    slots_[probe(text, hash_of(text))] = static_cast<std::uint32_t>(i + 1);
  }
}

StringId StringPool::intern(std::string_view text) {
  if ((size() + 1) * 4 > slots_.size() * 3) grow();
  const std::size_t slot = probe(text, hash_of(text));
  if (slots_[slot] != 0) return StringId(slots_[slot] - 1);
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  offsets_.push_back(bytes_.size());
  slots_[slot] = static_cast<std::uint32_t>(size());
  return StringId(size() - 1);
}

std::optional<StringId> StringPool::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const std::size_t slot = probe(text, hash_of(text));
  if (slots_[slot] == 0) return std::nullopt;
  return StringId(slots_[slot] - 1);
}

}  // namespace millstream
