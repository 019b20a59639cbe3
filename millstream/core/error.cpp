// SPDX-License-Identifier: Apache-2.0
#include "millstream/core/error.h"

#include <fmt/format.h>

namespace millstream {

const std::vector<ErrorCodeInfo>& error_code_table() {
  using C = ErrorCode;
  static const std::vector<ErrorCodeInfo> table = {
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
      {C::deadlock, "E38", "deadlock", 1},
      {C::shape, "E39", "shape", 2},
      {C::bad_graph, "E40", "bad graph", 2},
      {C::bad_target, "E41", "bad target", 2},
      {C::cancelled, "E42", "cancelled", 3},
      {C::expectation, "E43", "expectation", 1},
      {C::no_effect, "E44", "no effect", 2},
      {C::internal, "E99", "internal", 4},
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
