// SPDX-License-Identifier: Apache-2.0
#include "millstream/target/profile.h"

#include <algorithm>

#include "millstream/target/target.h"

namespace millstream {

Profile device_of(const Target& target) {
  Profile device = target.device;
  if (device.engine_slots.empty()) device.engine_slots = {std::max(1u, target.cores)};
  return device;
}

Result<Profile> load_profile(std::string_view name_or_path) {
  if (name_or_path == Profile{}.name) return Profile{};
  MST_TRY(const Target target, load_target(name_or_path));
  return device_of(target);
}

}  // namespace millstream
