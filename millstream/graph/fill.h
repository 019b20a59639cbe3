// SPDX-License-Identifier: Apache-2.0
// Seeded pseudo-random tensor data, equal on every machine.
#pragma once

#include <cstdint>

#include "millstream/graph/tensor.h"

namespace millstream {

/// Element i is low + (high - low) * u, u in [0, 1) from the top 24 bits of splitmix64(seed, i)
/// (Steele, Lea, Flood 2014). Writes f32.
void fill_uniform(std::span<float> out, std::uint64_t seed, float low, float high);
Tensor filled(std::vector<std::int64_t> shape, std::uint64_t seed, float low, float high);

}  // namespace millstream
