// SPDX-License-Identifier: Apache-2.0
// The one table of options. docs/options.md is printed from it (millstream options --markdown).
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "millstream/assign/chain.h"
#include "millstream/compile/compile.h"

namespace millstream {
namespace {

Error illegal(const OptionRow& row, std::string_view value) {
  return Error{ErrorCode::bad_option, fmt::format("option {} cannot be \"{}\"", row.key, value)}.help(
      fmt::format("legal values: {}", row.values));
}

Result<bool> truth(const OptionRow& row, std::string_view value) {
  if (value == "true" || value == "1" || value == "on") return true;
  if (value == "false" || value == "0" || value == "off" || value.empty()) return false;
  return illegal(row, value);
}

Result<std::uint32_t> count(const OptionRow& row, std::string_view value, std::uint32_t low, std::uint32_t high) {
  std::uint32_t n = 0;
  const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (code != std::errc() || stop != value.data() + value.size() || n < low || n > high) return illegal(row, value);
  return n;
}

Result<void> set_strategy(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "ge") {
    o.assign.strategy = Strategy::ge;
  } else if (value == "auto") {
    o.assign.strategy = Strategy::automatic;
  } else if (value == "single") {
    o.assign.strategy = Strategy::single;
    o.lower.single_stream = true;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_single(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(const bool on, truth(row, value));
  if (on) {
    o.assign.strategy = Strategy::single;
  } else if (o.assign.single_stream && o.assign.strategy == Strategy::single) {
    o.assign.strategy.reset();  // what this option set; strategy=single stands for itself
  }
  o.assign.single_stream = on;
  o.lower.single_stream = o.assign.strategy == Strategy::single;
  return {};
}

Result<void> set_streams(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.assign.streams, count(row, value, 1, 65535));
  o.assign.streams_asked = true;
  return {};
}

Result<void> set_threads(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "auto") {
    o.assign.threads_per_op.reset();
    return {};
  }
  MST_TRY(o.assign.threads_per_op, count(row, value, 1, 1024));
  return {};
}

Result<void> set_force(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.assign.force_streams, truth(row, value));
  return {};
}

Result<void> set_sync(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "exact") {
    o.sync.mode = SyncMode::exact;
  } else if (value == "compat") {
    o.sync.mode = SyncMode::compat;
  } else if (value == "fewest") {
    o.sync.mode = SyncMode::fewest;
  } else if (value == "none") {
    o.sync.mode = SyncMode::none;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_event_kind(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value.empty() || value == "event") {
    o.sync.kind = EventKind::event;
  } else if (value == "notify") {
    o.sync.kind = EventKind::notify;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_split_units(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "task") {
    o.lower.split_units = SplitUnits::task;
  } else if (value == "node") {
    o.lower.split_units = SplitUnits::node;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_split_reserved(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.lower.split_reserved, count(row, value, 0, 65535));
  return {};
}

Result<void> set_multiplex_threshold(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.lower.multiplex_threshold, count(row, value, 0, 0xffffffffu));
  return {};
}

Result<void> set_max_parallel(CompileOptions& o, const OptionRow&, std::string_view value) {
  MST_TRY(o.assign.max_parallel, parse_max_parallel(value));
  return {};
}

Result<void> set_group_scope(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "graph") {
    o.assign.parallel_group_scope = GroupScope::graph;
  } else if (value == "stream") {
    o.assign.parallel_group_scope = GroupScope::stream;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_attached_per_node(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.assign.attached_per_node, count(row, value, 1, 65535));
  return {};
}

Result<void> set_excluded_engine(CompileOptions& o, const OptionRow&, std::string_view value) {
  o.assign.excluded_engine = std::string(value);
  return {};
}

// ge.engineType names the core type that is used; the other one is left out.
Result<void> set_engine_type(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value.empty() || value == "AIcoreEngine" || value == "AiCore") {
    o.assign.excluded_engine = value.empty() ? "" : "VectorEngine";
  } else if (value == "VectorEngine" || value == "VectorCore") {
    o.assign.excluded_engine = "AIcoreEngine";
  } else {
    return illegal(row, value);
  }
  return {};
}

template <bool AssignOptions::*Member>
Result<void> set_truth(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.assign.*Member, truth(row, value));
  return {};
}

// Everything as the Graph Engine of 2023 does it, or back to our defaults. Rows after it change single knobs.
Result<void> set_compat(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value != "ge2023" && value != "none") return illegal(row, value);
  const bool on = value == "ge2023";
  o.assign.newer_rules = !on;
  o.assign.hcom_parallel = !on;
  o.assign.parallel_group_scope = on ? GroupScope::stream : GroupScope::graph;
  o.assign.mdim_label_suffix = !on;
  o.sync.mode = on ? SyncMode::compat : SyncMode::exact;
  o.lower.event_ids = on ? EventIds::sequential : EventIds::minimal;
  o.lower.split_units = on ? SplitUnits::node : SplitUnits::task;
  o.lower.split_reserved = on ? 0 : 2;
  o.lower.multiplex_threshold = on ? 65500 : 0;
  return {};
}

Result<void> set_event_ids(CompileOptions& o, const OptionRow& row, std::string_view value) {
  if (value == "minimal") {
    o.lower.event_ids = EventIds::minimal;
  } else if (value == "sequential") {
    o.lower.event_ids = EventIds::sequential;
  } else {
    return illegal(row, value);
  }
  return {};
}

Result<void> set_reuse(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.memory.reuse, truth(row, value));
  return {};
}

template <auto limit>
Result<void> set_limit(CompileOptions& o, const OptionRow& row, std::string_view value) {
  MST_TRY(o.*limit, count(row, value, 0, 0xffffffffu));
  return {};
}

}  // namespace

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> table = {
      {"strategy", "", "--strategy", "ge, auto, single", "ge when the input carries engines, auto otherwise",
       "who decides the streams", set_strategy},
      {"single_stream", "ge.enableSingleStream, SINGLE_STREAM_ENABLE, enable_single_stream", "--strategy single",
       "true, false", "false", "everything on one stream; an error when nodes carry stream labels", set_single,
       "SINGLE_STREAM_ENABLE", true},
      {"streams", "", "--streams", "1..65535", "8", "auto uses at most this many streams", set_streams},
      {"force_streams", "", "--force-streams", "true, false", "false",
       "auto uses as many streams as are useful even when one is predicted faster (measurements, stress)", set_force},
      {"threads_per_op", "", "--threads-per-op", "auto, 1..1024", "auto",
       "threads one operator may use; auto picks it together with the streams for the cores there are", set_threads},
      {"compat", "", "", "ge2023, none", "none",
       "ge2023: every knob as Graph Engine of 2023 has it, and without the rules mde-group and ineffective; give it first", set_compat},
      {"sync", "", "", "exact, compat, fewest, none", "exact",
       "exact: the unique minimum of waits; compat: the three local rules of Graph Engine; fewest: fewer, by adding order, only where a "
       "cap is exceeded; none: keep every inserted pair (comparisons)",
       set_sync},
      {"event_kind", "EVENT", "", "event, notify", "event", "what a pair of record and wait uses; a dynamic graph keeps events", set_event_kind},
      {"event_ids", "", "", "minimal, sequential", "minimal",
       "minimal: an id is used again when its old wait provably happens first", set_event_ids},
      {"max_parallel", "ge.streamMaxParallelNum", "", "ENGINE:N,ENGINE:N", "1 for each engine",
       "ge: new streams an engine may open in a graph", set_max_parallel},
      {"hcom_parallel", "ge.hcomParallel", "", "true, false", "true", "ge: what follows an all-reduce runs beside the rest",
       set_truth<&AssignOptions::hcom_parallel>, "", true},
      {"parallel_group_scope", "", "", "graph, stream", "graph",
       "ge: a parallel group has one new stream in a graph, or one for each stream its nodes come from", set_group_scope},
      {"ineffective_chain", "", "", "true, false", "true", "ge: rule ineffective moves whole chains, not only single nodes",
       set_truth<&AssignOptions::ineffective_chain>},
      {"mdim_label_suffix", "", "", "true, false", "true",
       "labels in a branch of a multi-dims model get the branch's name; off: a label without it is an error",
       set_truth<&AssignOptions::mdim_label_suffix>},
      {"dynamic_multi_stream", "ENABLE_DYNAMIC_SHAPE_MULTI_STREAM", "", "true, false", "false", "several streams for dynamic shapes, one an engine",
       set_truth<&AssignOptions::dynamic_multi_stream>, "ENABLE_DYNAMIC_SHAPE_MULTI_STREAM", true},
      {"ac_parallel", "AC_PARALLEL_ENABLE", "", "0, 1", "0", "dynamic shapes: AI CPU engines may leave the main stream",
       set_truth<&AssignOptions::ac_parallel>, "AC_PARALLEL_ENABLE"},
      {"attached_per_node", "", "", "1..65535", "1", "distinct attached streams a node may hold", set_attached_per_node},
      {"attached_in_single_stream", "", "", "true, false", "false", "allow attached streams in single-stream mode",
       set_truth<&AssignOptions::attached_in_single_stream>},
      {"attached_in_dynamic", "", "", "true, false", "true", "attached streams in dynamic graphs", set_truth<&AssignOptions::attached_in_dynamic>},
      {"engine_type", "ge.engineType", "", "AIcoreEngine, VectorEngine", "both", "the core type that is used; the other takes no operator by its type", set_engine_type},
      {"excluded_engine", "", "", "an engine's name", "none", "takes no operator by its type", set_excluded_engine},
      {"split_units", "", "", "task, node", "task", "what a stream's limit counts; node: nodes as Graph Engine of 2023 does", set_split_units},
      {"split_reserved", "", "", "0..65535", "2", "tasks kept free on a stream for the pair that a split adds", set_split_reserved},
      {"multiplex_threshold", "", "", "0..4294967295", "0", "explicit event multiplexing acts above this many events", set_multiplex_threshold},
      {"memory_reuse", "", "", "true, false", "true", "buffers share memory where happens-before allows it", set_reuse},
      {"max_dump_files", "ge.maxDumpFileNum", "", "0..4294967295", "0", "graph dumps: no file of a format with a larger number; 0: no limit",
       set_limit<&CompileOptions::max_dump_files>},
      {"max_dump_bytes", "ge.maxDumpFileSize", "", "0..4294967295", "0", "graph dumps: a larger file is removed; 0: no limit",
       set_limit<&CompileOptions::max_dump_bytes>},
  };
  return table;
}

namespace {

std::vector<std::string_view> names_of(const OptionRow& row) {
  std::vector<std::string_view> names = {row.key};
  for (std::string_view rest = row.ecosystem; !rest.empty();) {
    const std::size_t comma = rest.find(", ");
    names.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
  }
  return names;
}

// For passes that ask.
void remember(CompileOptions& options, const OptionRow& row, std::string_view value) {
  for (const std::string_view name : names_of(row)) options.passes.values.emplace_back(name, value);
}

}  // namespace

const OptionRow* find_option(std::string_view key) {
  for (const OptionRow& row : option_table()) {
    const std::vector<std::string_view> names = names_of(row);
    if (std::find(names.begin(), names.end(), key) != names.end()) return &row;
  }
  return nullptr;
}

Result<void> set_option(CompileOptions& options, std::string_view key, std::string_view value) {
  const OptionRow* row = find_option(key);
  if (row == nullptr) {
    std::string known;
    for (const OptionRow& r : option_table()) known += fmt::format("{}{}", known.empty() ? "" : ", ", r.key);
    return Error{ErrorCode::bad_option, fmt::format("there is no option \"{}\"", key)}.help("options: " + known);
  }
  remember(options, *row, value);
  if (auto done = row->apply(options, *row, value); done.ok() || key == row->key || !row->any_text) return done;
  options.warnings.push_back(Error{ErrorCode::bad_option, fmt::format("{} is \"{}\", which counts as false", key, value)}.help(
      fmt::format("legal values: {}", row->values)));
  return row->apply(options, *row, "false");
}

std::string options_markdown() {
  std::string out =
      "# Options\n\nPrinted from the option table by `millstream options --markdown`. Set any of them with "
      "`--set KEY=VALUE`;\nthe ecosystem's keys are accepted as KEY too. "
      "The command line reads the environment variables; what it is given itself counts\nbefore them. Under an ecosystem key or in the "
      "environment, other texts for true and false than these warn and count as false,\nexcept for `ac_parallel`.\n\n"
      "| key | ecosystem key | flag | environment | values | default | what it does |\n|---|---|---|---|---|---|---|\n";
  for (const OptionRow& row : option_table()) {
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", row.key, row.ecosystem,
                       row.flag.empty() ? "" : fmt::format("`{}`", row.flag), row.environment, row.values, row.otherwise, row.what);
  }
  return out;
}

}  // namespace millstream
