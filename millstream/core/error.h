// SPDX-License-Identifier: Apache-2.0
// One error value, one table of codes (docs/errors.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millstream {

/// What went wrong. The table in error.cpp maps each to its E-number, word and exit status.
enum class ErrorCode : std::uint8_t {
  unsupported_operator,  // E01
  conflict,              // E02
  no_stream,             // E03
  producer_unplaced,     // E04
  wait_without_record,   // E05
  notify_limit,          // E06
  stream_limit,          // E07
  task_limit,            // E08
  self_activation,       // E09
  never_activated,       // E10
  continuous_label,      // E11
  bad_option,            // E12
  while_body,            // E13
  attached_streams,      // E14
  label_without_dim,     // E15
  bad_attribute,         // E16
  conditional_wait,      // E17
  shared_event_id,       // E18
  allocation_limit,      // E19
  graph_changed,         // E20
  bad_parallel_num,      // E21
  control_flow,          // E22
  syntax,                // E30
  bad_model,             // E31
  io,                    // E32
  usage,                 // E33
  memory_limit,          // E34
  plan_mismatch,         // E35
  kernel,                // E36
  race,                  // E37
  deadlock,              // E38
  shape,                 // E39
  bad_graph,             // E40
  bad_target,            // E41
  cancelled,             // E42
  expectation,           // E43
  no_effect,             // E44: a request that changes nothing or costs more than it gains (warnings)
  stream_pass,           // E45: a user's stream pass failed, or did what it may not
  pass_library,          // E46: a library with passes that cannot be loaded
  // The runtime's (E50 to E82).
  null_argument,         // E50
  bad_value,             // E51
  bad_state,             // E52
  bad_device,            // E53
  no_context,            // E54
  wrong_context,         // E55
  wrong_model_context,   // E56
  not_bound,             // E57
  no_timestamp,          // E58
  reversed_time,         // E59
  bad_handle,            // E60
  wait_timeout,          // E61
  task_timeout,          // E62
  stream_aborted,        // E63
  context_stopped,       // E64
  unsupported,           // E65
  in_callback,           // E66
  no_memory,             // E67
  no_event,              // E68
  no_more_streams,       // E69
  no_notify,             // E70
  no_model,              // E71
  over_limit,            // E72
  stream_full,           // E73
  not_complete,          // E74
  still_in_use,          // E75
  kernel_failed,         // E76
  kernel_slow,           // E77
  host_func_failed,      // E78
  model_aborted,         // E79
  label_context,         // E80
  sync_timeout,          // E81
  event_sync_timeout,    // E82
  internal,              // E99
};

struct ErrorCodeInfo {
  ErrorCode code;
  std::string_view number;  ///< "E02"
  std::string_view word;    ///< "conflict"
  int exit_status;          ///< 1 a check failed, 2 usage or input, 3 limit or resource, 4 internal
  int acl = 0;              ///< the number of the `acl` interface; 0: none
};

const ErrorCodeInfo& error_code_info(ErrorCode code);
/// The whole table in enumeration order, for docs and tests.
const std::vector<ErrorCodeInfo>& error_code_table();

/// Where in a text an error lies. Line and column count from 1; column counts bytes.
struct Where {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string text;  ///< the source line, may be empty
};

struct Note {
  enum class Kind : std::uint8_t { note, help };
  Kind kind = Kind::note;
  std::string text;
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::vector<Note> notes = {};
  std::optional<Where> where = std::nullopt;

  Error& note(std::string text) & {
    notes.push_back({Note::Kind::note, std::move(text)});
    return *this;
  }
  Error&& note(std::string text) && { return std::move(note(std::move(text))); }
  Error& help(std::string text) & {
    notes.push_back({Note::Kind::help, std::move(text)});
    return *this;
  }
  Error&& help(std::string text) && { return std::move(help(std::move(text))); }
  Error& at(Where w) & {
    where = std::move(w);
    return *this;
  }
  Error&& at(Where w) && { return std::move(at(std::move(w))); }
};

/// The text a user reads:
///   error: MESSAGE [E02 conflict]
///     --> FILE:LINE:COLUMN   SOURCE
///     note: ...
///     help: ...
/// Ends without a newline. `severity` is "error" or "warning".
std::string to_string(const Error& error, std::string_view severity = "error");

/// Exit status of the command line for this error.
int exit_status(const Error& error);

}  // namespace millstream
