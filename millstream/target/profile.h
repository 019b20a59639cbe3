// SPDX-License-Identifier: Apache-2.0
// What a device's runtime has and how it behaves: the section [device] of a target.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/core/result.h"

namespace millstream {

/// Counts are of one device unless they say otherwise. kUnlimited where a device has no bound.
struct Profile {
  static constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::int32_t kPriorities = 8;  ///< at most, from greatest to least

  std::string name = "default";
  std::uint32_t devices = 1;                        ///< ordinals 0 .. devices - 1
  std::uint32_t max_streams = 2048;                 ///< default streams count
  std::uint32_t max_events = 65536;
  std::uint32_t max_notifies = 1024;
  std::uint32_t max_labels = 65535;
  std::uint32_t max_models = kUnlimited;
  std::int32_t least_priority = 7;                  ///< a lower number goes first
  std::int32_t greatest_priority = 0;
  std::uint32_t tasks_per_stream = 1024;            ///< queued at once, or on a tape
  std::uint32_t tasks_per_huge_stream = 1048576;
  std::uint32_t workers = 0;                        ///< threads that run tasks; 0: one a core
  bool host_helps = false;                          ///< a host that waits without a deadline is one of the workers meanwhile
  std::uint32_t callback_threads = 1;
  std::uint32_t event_wait_ms = 0;                  ///< how long a record waits for a free event id
  std::uint32_t orphan_wait_ms = 2000;              ///< until a wait that nobody records for is called a deadlock
  std::uint32_t callback_stall_ms = 0;              ///< until a host function that a waiting host waits for is suspected of the reverse; 0: never
  std::uint32_t priority_age = 1000;                ///< times a ready stream is passed over before it goes first; 0: no ageing
  std::uint64_t max_tasks_per_execution = 1'000'000'000;  ///< of a model: a loop that runs more is called endless; 0: no bound
  bool default_stream_failure_mode = false;         ///< the default stream's failure mode may be set
  /// Seeded random delays before tasks and before a record is made known, for tests: one program, many legal runs.
  std::optional<std::uint64_t> delay_seed = std::nullopt;

  // Virtual time, of the sim back-end.
  std::vector<std::uint32_t> engine_slots;          ///< launches that each engine runs at once; empty: one engine, one launch
  double launch_us = 1;                             ///< of each kernel, besides its own cost
  double record_us = 0.1;
  double wait_us = 0.1;                             ///< of a satisfied wait
  double hand_off_us = 2;                           ///< from a record to the task that waited for it
  double copy_bytes_per_us = 1e4;
  double callback_us = 1;
  double switch_us = 0.2;                           ///< of an activation, a switch or a jump

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// "default", or the device of a target by name or path, as device_of gives it. Errors: those of load_target.
Result<Profile> load_profile(std::string_view name_or_path);

}  // namespace millstream
