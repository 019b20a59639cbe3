// SPDX-License-Identifier: Apache-2.0
// The targets that are compiled in: the texts of targets/*.toml.
#pragma once

#include <string_view>
#include <vector>

namespace millstream {

struct BuiltinTarget {
  std::string_view name;
  std::string_view toml;
};

/// `cpu`, `npu`, `unit` (costs in @cost units, everything else free: pictures and proofs), and `npu` with the limits of
/// real devices.
const std::vector<BuiltinTarget>& builtin_targets();

}  // namespace millstream
