// SPDX-License-Identifier: Apache-2.0
// Seeded delays of a stress run. The draws are the same on every machine; on cpu, what they lead to is not.
#pragma once

#include <cstdint>
#include <optional>

namespace millstream::rt {

class Delays {
 public:
  explicit Delays(std::optional<std::uint64_t> seed, std::uint64_t salt = 0)
      : on_(seed.has_value()), state_(seed.value_or(0) * 0x9e3779b97f4a7c15ull + salt) {}
  bool on() const { return on_; }
  /// Mostly none or short, now and then some milliseconds. Microseconds.
  std::uint64_t next_us() {
    if (!on_) return 0;
    const std::uint64_t r = next();
    const std::uint64_t kind = r % 64, amount = r >> 8;
    if (kind < 24) return 0;
    return kind == 63 ? 1000 + amount % 3000 : amount % 200;
  }

 private:
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  bool on_;
  std::uint64_t state_;
};

}  // namespace millstream::rt
