// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/fill.h"

namespace millstream {

void fill_uniform(std::span<float> out, std::uint64_t seed, float low, float high) {
  std::uint64_t state = seed * 0xd1342543de82ef95ull;
  for (float& x : out) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    x = low + (high - low) * (static_cast<float>(z >> 40) * 0x1p-24f);
  }
}

Tensor filled(std::vector<std::int64_t> shape, std::uint64_t seed, float low, float high) {
  Tensor t(DType::f32, std::move(shape));
  fill_uniform(t.as_mutable<float>(), seed, low, high);
  return t;
}

}  // namespace millstream
