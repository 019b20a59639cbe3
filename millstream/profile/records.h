// SPDX-License-Identifier: Apache-2.0
// Profiles that the ecosystem's profilers write, read into one kind of record: docs/profiles.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millstream/core/result.h"

namespace millstream {

/// Which file a record comes from.
enum class ProfileSource : std::uint8_t { op_summary, kernel_details, task_time, trace };
std::string_view to_string(ProfileSource source);

/// One task that ran. Ids are the profiler's: its streams are those of the runtime, never those of a plan.
struct ProfileRecord {
  std::optional<std::int64_t> device;
  std::optional<std::int64_t> model;
  std::string op_name;    ///< empty: none (records and waits of events)
  std::string op_type;    ///< empty: not known
  std::string task_type;  ///< "AI_CORE", "EVENT_WAIT_SQE", ...; empty: not known
  std::optional<std::int64_t> stream;
  std::optional<std::int64_t> task;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> start_ns;
  std::int64_t dur_ns = 0;
  std::optional<std::int64_t> blocks;
  std::optional<std::int64_t> mix_blocks;
  ProfileSource source = ProfileSource::op_summary;
  friend bool operator==(const ProfileRecord&, const ProfileRecord&) = default;
};

/// op_summary, kernel_details or task_time as CSV, or a Chrome trace of the device (JSON); told apart by content. Rows
/// without a duration are left out. `file` is for messages. Errors: syntax at line and column, also for a table that has
/// no times of single tasks (step traces, aggregated reports).
Result<std::vector<ProfileRecord>> read_records(std::string_view text, const std::string& file);

/// The two readers behind it.
Result<std::vector<ProfileRecord>> read_table(std::string_view text, const std::string& file);
Result<std::vector<ProfileRecord>> read_trace(std::string_view text, const std::string& file);

/// One record a line, what is not known left out: `op_summary Abs_1 (Abs, AI_VECTOR_CORE) stream 3 task 12 at 1000500250 for 6540 ns`.
std::string print(const std::vector<ProfileRecord>& records);

/// A decimal number of units of 10^`power` ns as nanoseconds, exactly, rounded to the nearest; nullopt where it is none, is
/// negative or does not fit. "1736408883704643.212" with power 3 keeps its last digit, which a double would lose.
std::optional<std::int64_t> parse_ns(std::string_view text, int power);

}  // namespace millstream
