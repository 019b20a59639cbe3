// SPDX-License-Identifier: Apache-2.0
#include "millstream/core/error.h"

#include <fmt/format.h>

namespace millstream {

const std::vector<ErrorCodeInfo>& error_code_table() {
  using C = ErrorCode;
  // Never destroyed: calls may fail while the process ends.
  static const auto& table = *new std::vector<ErrorCodeInfo>{
      {C::unsupported_operator, "E01", "unsupported operator", 2},
      {C::conflict, "E02", "conflict", 2},
      {C::no_stream, "E03", "no stream", 2},
      {C::producer_unplaced, "E04", "consumer without stream", 2},
      {C::wait_without_record, "E05", "never sent", 2},
      {C::notify_limit, "E06", "notify limit", 3},
      {C::stream_limit, "E07", "stream limit", 3},
      {C::task_limit, "E08", "task limit", 3},
      {C::self_activation, "E09", "self activation", 2},
      {C::never_activated, "E10", "never activated", 2},
      {C::continuous_label, "E11", "continuous label", 3},
      {C::bad_option, "E12", "bad option", 2},
      {C::while_body, "E13", "while body", 2},
      {C::attached_streams, "E14", "attached streams", 2},
      {C::label_without_dim, "E15", "label without dim", 2},
      {C::bad_attribute, "E16", "bad attribute", 2},
      {C::conditional_wait, "E17", "conditional wait", 2},
      {C::shared_event_id, "E18", "shared event id", 2},
      {C::allocation_limit, "E19", "allocation limit", 3},
      {C::graph_changed, "E20", "graph changed", 4},
      {C::bad_parallel_num, "E21", "bad parallel number", 2},
      {C::control_flow, "E22", "control flow", 2},
      {C::syntax, "E30", "syntax", 2},
      {C::bad_model, "E31", "bad model", 2},
      {C::io, "E32", "file", 2},
      {C::usage, "E33", "usage", 2},
      {C::memory_limit, "E34", "memory limit", 3},
      {C::plan_mismatch, "E35", "plan mismatch", 2},
      {C::kernel, "E36", "kernel", 2},
      {C::race, "E37", "race", 1},
      {C::deadlock, "E38", "deadlock", 1, 107019},
      {C::shape, "E39", "shape", 2},
      {C::bad_graph, "E40", "bad graph", 2},
      {C::bad_target, "E41", "bad target", 2},
      {C::cancelled, "E42", "cancelled", 3},
      {C::expectation, "E43", "expectation", 1},
      {C::no_effect, "E44", "no effect", 2},
      {C::stream_pass, "E45", "stream pass", 2},
      {C::pass_library, "E46", "pass library", 2},
      {C::null_argument, "E50", "null argument", 2, 100000},
      {C::bad_value, "E51", "bad value", 2, 107000},
      {C::bad_state, "E52", "bad state", 2, 107000},
      {C::bad_device, "E53", "bad device", 2, 107001},
      {C::no_context, "E54", "no context", 2, 107002},
      {C::wrong_context, "E55", "wrong context", 2, 107003},
      {C::wrong_model_context, "E56", "wrong model context", 2, 107004},
      {C::not_bound, "E57", "not bound", 2, 107005},
      {C::no_timestamp, "E58", "no timestamp", 2, 107006},
      {C::reversed_time, "E59", "reversed time", 2, 107007},
      {C::bad_handle, "E60", "bad handle", 2, 107017},
      {C::wait_timeout, "E61", "wait timeout", 1, 107019},
      {C::task_timeout, "E62", "task timeout", 1, 107020},
      {C::stream_aborted, "E63", "stream aborted", 1, 107023},
      {C::context_stopped, "E64", "context stopped", 1, 107035},
      {C::unsupported, "E65", "unsupported", 2, 207000},
      {C::in_callback, "E66", "in callback", 2, 207006},
      {C::no_memory, "E67", "no memory", 3, 207001},
      {C::no_event, "E68", "no event", 3, 207007},
      {C::no_more_streams, "E69", "no more streams", 3, 207008},
      {C::no_notify, "E70", "no notify", 3, 207009},
      {C::no_model, "E71", "no model", 3, 207010},
      {C::over_limit, "E72", "over limit", 3, 207012},
      {C::stream_full, "E73", "stream full", 3, 507002},
      {C::not_complete, "E74", "not complete", 2, 507006},
      {C::still_in_use, "E75", "still in use", 2, 507007},
      {C::kernel_failed, "E76", "kernel failed", 1, 507015},
      {C::kernel_slow, "E77", "kernel slow", 1, 507014},
      {C::host_func_failed, "E78", "callback failed", 1, 507018},
      {C::model_aborted, "E79", "model aborted", 1, 507023},
      {C::label_context, "E80", "label context", 2, 507031},
      {C::sync_timeout, "E81", "sync timeout", 1, 507046},
      {C::event_sync_timeout, "E82", "event sync timeout", 1, 507047},
      {C::internal, "E99", "internal", 4, 507000},
  };
  return table;
}

const ErrorCodeInfo& error_code_info(ErrorCode code) {
  return error_code_table()[static_cast<std::size_t>(code)];
}

namespace {

// Names and lines come from files: what would move the cursor or colour a terminal is shown as \xHH.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string to_string(const Error& error, std::string_view severity) {
  const ErrorCodeInfo& info = error_code_info(error.code);
  std::string out = fmt::format("{}: {} [{} {}]", severity, printable(error.message), info.number, info.word);
  if (error.where) {
    const Where& w = *error.where;
    out += fmt::format("\n  --> {}:{}:{}", printable(w.file), w.line, w.column);
    if (!w.text.empty()) out += fmt::format("   {}", printable(w.text));
  }
  for (const Note& n : error.notes) {
    out += fmt::format("\n  {}: {}", n.kind == Note::Kind::help ? "help" : "note", printable(n.text));
  }
  return out;
}

int exit_status(const Error& error) { return error_code_info(error.code).exit_status; }

}  // namespace millstream
