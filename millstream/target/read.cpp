// SPDX-License-Identifier: Apache-2.0
// TOML to Target: every key is known, every value in range, every complaint has its line.
// Header-only and without exceptions, whatever the package's library was built with.
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
// The parser asserts (and, with NDEBUG, lets the compiler assume) that a table header starts with a key, though
// its next lines report anything else as an error: "[!" aborted. Its assumptions are switched off; its checks stay.
#if __has_include(<toml++/impl/preprocessor.hpp>)
#include <toml++/impl/preprocessor.hpp>
#else
#include <toml++/impl/preprocessor.h>
#endif
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expr) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "millstream/target/builtin.h"
#include "millstream/target/target.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();
// A target is a page of text; more is a wrong file.
constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxEngines = 4096;

Error bad(const std::string& file, const toml::source_region& at, std::string message) {
  return Error{ErrorCode::bad_target, std::move(message)}.at({file, at.begin.line, at.begin.column, ""});
}

std::string builtin_names() {
  std::string names;
  for (const BuiltinTarget& b : builtin_targets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", b.name);
  return names;
}

/// One table of the file, with what it is called in messages ("costs", "engine 2").
class Section {
 public:
  Section(const toml::table& table, std::string what, const std::string& file)
      : table_(table), what_(std::move(what)), file_(file) {}

  Result<void> known(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, node] : table_) {
      bool found = false;
      std::string list;
      for (const std::string_view k : keys) {
        found = found || k == key.str();
        list += fmt::format("{}{}", list.empty() ? "" : ", ", k);
      }
      if (!found) {
        return bad(file_, key.source(), fmt::format("unknown key \"{}\" in {}", key.str(), what_))
            .help("keys: " + list);
      }
    }
    return {};
  }

  Result<std::string> text(std::string_view key, std::string otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    if (const auto* s = node->as_string()) return s->get();
    return wrong(*node, key, "a text");
  }

  Result<bool> truth(std::string_view key, bool otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    if (const auto* b = node->as_boolean()) return b->get();
    return wrong(*node, key, "true or false");
  }

  Result<std::int64_t> integer(std::string_view key, std::int64_t otherwise, std::int64_t low,
                               std::int64_t high) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const auto* i = node->as_integer();
    if (i == nullptr || i->get() < low || i->get() > high) {
      return wrong(*node, key, fmt::format("a whole number in {}..{}", low, high));
    }
    return i->get();
  }

  Result<std::uint32_t> count(std::string_view key, std::uint32_t otherwise, std::int64_t low, std::int64_t high) const {
    MST_TRY(const std::int64_t n, integer(key, otherwise, low, high));
    return static_cast<std::uint32_t>(n);
  }

  /// A count, or "none".
  Result<std::uint32_t> limit(std::string_view key, std::uint32_t otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    if (node->value_exact<std::string>() == "none") return kNoLimit;
    const auto* i = node->as_integer();
    if (i == nullptr || i->get() < 1 || i->get() > kNoLimit) {
      return wrong(*node, key, fmt::format("a whole number in 1..{} or \"none\"", kNoLimit));
    }
    return static_cast<std::uint32_t>(i->get());
  }

  /// A time or a rate: not negative, not NaN. Rates must be positive and may be inf.
  Result<double> number(std::string_view key, double otherwise, bool rate) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const std::optional<double> x = node->value<double>();
    const bool numeric = node->is_integer() || node->is_floating_point();
    if (!numeric || !x || std::isnan(*x) || *x < 0 || (rate && *x == 0) ||
        (!rate && !(*x <= 1e12))) {
      return wrong(*node, key,
                   rate ? "a number above 0, or inf" : "a number in 0..1e12 (microseconds)");
    }
    return *x;
  }

  Error wrong(const toml::node& node, std::string_view key, std::string_view want) const {
    return bad(file_, node.source(), fmt::format("{} of {} must be {}", key, what_, want));
  }
  const toml::table& table() const { return table_; }
  const std::string& file() const { return file_; }

 private:
  const toml::table& table_;
  std::string what_;
  const std::string& file_;
};

// Each section changes what it has keys for.
Result<Limits> read_limits(const Section& s, Limits l) {
  MST_TRY_VOID(s.known({"streams", "tasks_per_stream", "events", "notifies", "huge_streams", "tasks_per_huge_stream"}));
  MST_TRY(l.streams, s.limit("streams", l.streams));
  MST_TRY(l.tasks_per_stream, s.limit("tasks_per_stream", l.tasks_per_stream));
  MST_TRY(l.events, s.limit("events", l.events));
  MST_TRY(l.notifies, s.limit("notifies", l.notifies));
  // 0: the device has no huge streams.
  if (s.table().get("huge_streams") != nullptr) {
    MST_TRY(const std::int64_t huge, s.integer("huge_streams", 0, 0, kNoLimit));
    l.huge_streams = static_cast<std::uint32_t>(huge);
    if (huge != 0 && s.table().get("tasks_per_huge_stream") == nullptr) {
      return s.wrong(*s.table().get("huge_streams"), "huge_streams", "given together with tasks_per_huge_stream");
    }
  }
  if (s.table().get("tasks_per_huge_stream") != nullptr) {
    MST_TRY(l.tasks_per_huge_stream, s.limit("tasks_per_huge_stream", 1));
  }
  return l;
}

Result<Costs> read_costs(const Section& s, Costs c) {
  MST_TRY_VOID(s.known({"launch_us", "record_us", "wait_us", "hand_off_us", "flops_per_us",
                        "bytes_per_us", "total_bytes_per_us", "parallel_us", "parallel_share"}));
  MST_TRY(c.launch_us, s.number("launch_us", c.launch_us, false));
  MST_TRY(c.record_us, s.number("record_us", c.record_us, false));
  MST_TRY(c.wait_us, s.number("wait_us", c.wait_us, false));
  MST_TRY(c.hand_off_us, s.number("hand_off_us", c.hand_off_us, false));
  MST_TRY(c.flops_per_us, s.number("flops_per_us", c.flops_per_us, true));
  MST_TRY(c.bytes_per_us, s.number("bytes_per_us", c.bytes_per_us, true));
  MST_TRY(c.total_bytes_per_us, s.number("total_bytes_per_us", c.total_bytes_per_us, true));
  MST_TRY(c.parallel_us, s.number("parallel_us", c.parallel_us, false));
  MST_TRY(c.parallel_share, s.number("parallel_share", c.parallel_share, false));
  if (c.parallel_share > 1) {
    return s.wrong(*s.table().get("parallel_share"), "parallel_share", "a share in 0..1");
  }
  return c;
}

// [tasks]: default = N, and operator types (a type, or a beginning and "*") with their counts.
Result<void> read_tasks(const Section& s, Target& t) {
  for (const auto& [key, node] : s.table()) {
    MST_TRY(const std::int64_t n, s.integer(key.str(), 1, 0, 1'000'000));
    const std::string_view type = key.str();
    if (type == "default") {
      t.tasks_per_node = static_cast<std::uint32_t>(n);
      continue;
    }
    if (type.empty() || (type.find('*') != std::string_view::npos && type.find('*') + 1 != type.size())) {
      return s.wrong(node, type, "an operator type; \"*\" may end it");
    }
    std::erase_if(t.task_counts, [&](const TaskCount& row) { return row.op_type == type; });
    t.task_counts.push_back({std::string(type), static_cast<std::uint32_t>(n)});
  }
  // The parser hands keys over by name; the longest pattern is the most precise one and comes first.
  std::stable_sort(t.task_counts.begin(), t.task_counts.end(),
                   [](const TaskCount& a, const TaskCount& b) { return a.op_type.size() > b.op_type.size(); });
  return {};
}

// A list of 1..256 engines with the launches each runs at once.
Result<std::vector<std::uint32_t>> read_slots(const Section& s, std::vector<std::uint32_t> otherwise) {
  const toml::node* node = s.table().get("engine_slots");
  if (node == nullptr) return otherwise;
  const toml::array* list = node->as_array();
  if (list == nullptr || list->size() > 256) return s.wrong(*node, "engine_slots", "a list of at most 256 whole numbers");
  std::vector<std::uint32_t> slots;
  for (const toml::node& item : *list) {
    const auto* n = item.as_integer();
    if (n == nullptr || n->get() < 1 || n->get() > 65536) return s.wrong(item, "engine_slots", "a list of whole numbers in 1..65536");
    slots.push_back(static_cast<std::uint32_t>(n->get()));
  }
  return slots;
}

Result<Profile> read_device(const Section& s, Profile p) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kDayMs = 86'400'000;
  MST_TRY_VOID(s.known({"name", "devices", "max_streams", "max_events", "max_notifies", "max_labels", "max_models", "least_priority",
                        "greatest_priority", "tasks_per_stream", "tasks_per_huge_stream", "workers", "host_helps", "callback_threads",
                        "event_wait_ms", "orphan_wait_ms", "callback_stall_ms", "priority_age", "max_tasks_per_execution",
                        "default_stream_failure_mode", "delay_seed", "engine_slots", "launch_us", "record_us", "wait_us", "hand_off_us",
                        "copy_bytes_per_us", "callback_us", "switch_us"}));
  MST_TRY(p.name, s.text("name", p.name));
  MST_TRY(p.devices, s.count("devices", p.devices, 1, 65536));
  MST_TRY(p.max_streams, s.limit("max_streams", p.max_streams));
  MST_TRY(p.max_events, s.limit("max_events", p.max_events));
  MST_TRY(p.max_notifies, s.limit("max_notifies", p.max_notifies));
  MST_TRY(p.max_labels, s.limit("max_labels", p.max_labels));
  MST_TRY(p.max_models, s.limit("max_models", p.max_models));
  MST_TRY(const std::int64_t greatest, s.integer("greatest_priority", p.greatest_priority, -1000, 1000));
  p.greatest_priority = static_cast<std::int32_t>(greatest);
  MST_TRY(const std::int64_t least, s.integer("least_priority", p.least_priority, -1000, 1007));
  p.least_priority = static_cast<std::int32_t>(least);
  if (least < greatest || least - greatest >= Profile::kPriorities) {
    const std::string_view key = s.table().get("least_priority") != nullptr ? "least_priority" : "greatest_priority";
    return s.wrong(*s.table().get(key), key, fmt::format("such that least_priority is 0..{} above greatest_priority", Profile::kPriorities - 1));
  }
  MST_TRY(p.tasks_per_stream, s.limit("tasks_per_stream", p.tasks_per_stream));
  MST_TRY(p.tasks_per_huge_stream, s.limit("tasks_per_huge_stream", p.tasks_per_huge_stream));
  MST_TRY(p.workers, s.count("workers", p.workers, 0, 4096));
  MST_TRY(p.host_helps, s.truth("host_helps", p.host_helps));
  MST_TRY(p.callback_threads, s.count("callback_threads", p.callback_threads, 1, 1024));
  MST_TRY(p.event_wait_ms, s.count("event_wait_ms", p.event_wait_ms, 0, kDayMs));
  MST_TRY(p.orphan_wait_ms, s.count("orphan_wait_ms", p.orphan_wait_ms, 0, kDayMs));
  MST_TRY(p.callback_stall_ms, s.count("callback_stall_ms", p.callback_stall_ms, 0, kDayMs));
  MST_TRY(p.priority_age, s.count("priority_age", p.priority_age, 0, kNoLimit));
  MST_TRY(const std::int64_t tasks, s.integer("max_tasks_per_execution", static_cast<std::int64_t>(p.max_tasks_per_execution), 0, kMost));
  p.max_tasks_per_execution = static_cast<std::uint64_t>(tasks);
  MST_TRY(p.default_stream_failure_mode, s.truth("default_stream_failure_mode", p.default_stream_failure_mode));
  if (s.table().get("delay_seed") != nullptr) {
    MST_TRY(const std::int64_t seed, s.integer("delay_seed", 0, 0, kMost));
    p.delay_seed = static_cast<std::uint64_t>(seed);
  }
  MST_TRY(p.engine_slots, read_slots(s, p.engine_slots));
  MST_TRY(p.launch_us, s.number("launch_us", p.launch_us, false));
  MST_TRY(p.record_us, s.number("record_us", p.record_us, false));
  MST_TRY(p.wait_us, s.number("wait_us", p.wait_us, false));
  MST_TRY(p.hand_off_us, s.number("hand_off_us", p.hand_off_us, false));
  MST_TRY(p.copy_bytes_per_us, s.number("copy_bytes_per_us", p.copy_bytes_per_us, true));
  MST_TRY(p.callback_us, s.number("callback_us", p.callback_us, false));
  MST_TRY(p.switch_us, s.number("switch_us", p.switch_us, false));
  return p;
}

Result<Engine> read_engine(const Section& s) {
  MST_TRY_VOID(s.known({"name", "scheduler", "independent", "attach", "skip", "self_synchronising", "preference",
                        "units", "op_types"}));
  Engine e;
  MST_TRY(e.name, s.text("name", ""));
  if (e.name.empty()) {
    return bad(s.file(), s.table().source(), "an engine has no name").help("name = \"...\"");
  }
  MST_TRY(e.scheduler, s.text("scheduler", e.scheduler));
  MST_TRY(e.independent, s.truth("independent", false));
  MST_TRY(e.attach, s.truth("attach", false));
  MST_TRY(e.skip, s.truth("skip", false));
  MST_TRY(e.self_synchronising, s.truth("self_synchronising", false));
  MST_TRY(const std::int64_t preference, s.integer("preference", 0, -1'000'000, 1'000'000));
  e.preference = static_cast<int>(preference);
  MST_TRY(e.units, s.number("units", e.units, true));
  if (const toml::node* types = s.table().get("op_types")) {
    const toml::array* list = types->as_array();
    if (list == nullptr) return s.wrong(*types, "op_types", "a list of texts");
    for (const toml::node& item : *list) {
      const auto* text = item.as_string();
      const std::string_view pattern = text == nullptr ? std::string_view() : text->get();
      const std::size_t star = pattern.find('*');
      if (pattern.empty() || pattern == "!" ||
          (star != std::string_view::npos && star + 1 != pattern.size())) {
        return s.wrong(item, "op_types",
                       "a list of operator types; \"*\" may end one, \"!\" may begin one");
      }
      e.op_types.emplace_back(pattern);
    }
  }
  return e;
}

Result<Target> read(const toml::table& root, const std::string& file) {
  const Section top(root, "the target", file);
  MST_TRY_VOID(top.known({"name", "cores", "engines_in_input", "like", "limits", "costs", "tasks", "device", "engine"}));
  Target t;
  if (const toml::node* node = root.get("like")) {
    const std::optional<std::string> base = node->value_exact<std::string>();
    const auto found = std::find_if(builtin_targets().begin(), builtin_targets().end(), [&](const BuiltinTarget& b) { return b.name == base; });
    if (found == builtin_targets().end()) return top.wrong(*node, "like", "a built-in target: " + builtin_names());
    MST_TRY(t, load_target(found->name));
  }
  MST_TRY(t.name, top.text("name", ""));
  if (t.name.empty()) {
    return bad(file, root.source(), "the target has no name").help("name = \"...\"");
  }
  t.device.name = t.name;
  MST_TRY(t.cores, top.count("cores", t.cores, 1, 65536));
  MST_TRY(t.engines_in_input, top.truth("engines_in_input", t.engines_in_input));
  if (const toml::node* node = root.get("limits")) {
    if (!node->is_table()) return top.wrong(*node, "limits", "a table");
    MST_TRY(t.limits, read_limits(Section(*node->as_table(), "limits", file), t.limits));
  }
  if (const toml::node* node = root.get("costs")) {
    if (!node->is_table()) return top.wrong(*node, "costs", "a table");
    MST_TRY(t.costs, read_costs(Section(*node->as_table(), "costs", file), t.costs));
    t.device.launch_us = t.costs.launch_us;
    t.device.record_us = t.costs.record_us;
    t.device.wait_us = t.costs.wait_us;
    t.device.hand_off_us = t.costs.hand_off_us;
  }
  if (const toml::node* node = root.get("tasks")) {
    if (!node->is_table()) return top.wrong(*node, "tasks", "a table");
    MST_TRY_VOID(read_tasks(Section(*node->as_table(), "tasks", file), t));
  }
  if (const toml::node* node = root.get("device")) {
    if (!node->is_table()) return top.wrong(*node, "device", "a table");
    MST_TRY(t.device, read_device(Section(*node->as_table(), "device", file), t.device));
  }
  const toml::node* engines = root.get("engine");
  if (engines == nullptr && !t.engines.empty()) return t;
  const toml::array* list = engines == nullptr ? nullptr : engines->as_array();
  if (list == nullptr || list->empty() || list->size() > kMaxEngines) {
    return bad(file, engines == nullptr ? root.source() : engines->source(),
               fmt::format("the target needs 1..{} engines", kMaxEngines))
        .help("[[engine]] with a name and op_types, one a row");
  }
  t.engines = {};
  for (const toml::node& item : *list) {
    if (!item.is_table()) return top.wrong(item, "engine", "a list of tables");
    const std::string what = fmt::format("engine {}", t.engines.size());
    MST_TRY(Engine e, read_engine(Section(*item.as_table(), what, file)));
    for (const Engine& other : t.engines) {
      if (other.name == e.name) {
        return bad(file, item.source(), fmt::format("engine \"{}\" is listed twice", e.name));
      }
    }
    t.engines.push_back(std::move(e));
  }
  return t;
}

}  // namespace

Result<Target> parse_target(std::string_view text, const std::string& file) {
  if (text.size() > kMaxBytes) {
    return Error{ErrorCode::bad_target,
                 fmt::format("{}: {} bytes are too many for a target, at most {}", file, text.size(),
                             kMaxBytes)};
  }
  // Beyond ASCII the parser's tables of spaces reach code marked unreachable (U+0261, for one).
  std::uint32_t line = 1, column = 1;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) {
      return Error{ErrorCode::bad_target, "a target description is plain ASCII"}.at({file, line, column, ""}).help(
          "replace the character here, in a comment too");
    }
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n';
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return bad(file, parsed.error().source(), std::string(parsed.error().description()));
  }
  return read(parsed.table(), file);
}

Result<Target> load_target(std::string_view name_or_path) {
  for (const BuiltinTarget& b : builtin_targets()) {
    if (b.name == name_or_path) return parse_target(b.toml, fmt::format("built-in {}", b.name));
  }
  const std::string path(name_or_path);
  std::error_code code;
  if (std::filesystem::is_regular_file(path, code)) {
    std::ifstream in(path, std::ios::binary);
    // One byte more than is allowed, so that parse_target sees an oversized file without its being read.
    std::string text(kMaxBytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad() || (in.fail() && !in.eof())) {
      return Error{ErrorCode::bad_target, fmt::format("target file {} cannot be read", path)};
    }
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (path.size() > 5 && path.substr(path.size() - 5) == ".json") {
      MST_TRY(Target base, load_target("npu"));
      return import_engines_json(std::move(base), text, path, false);
    }
    return parse_target(text, path);
  }
  if (std::filesystem::exists(path, code)) {
    return Error{ErrorCode::bad_target, fmt::format("target \"{}\" is not a regular file", path)};
  }
  return Error{ErrorCode::bad_target,
               fmt::format("there is no target \"{}\": no built-in and no file has that name", path)}
      .help(fmt::format("built-in targets: {}; or give the path of a TOML file, or of an engine table (.json)", builtin_names()));
}

}  // namespace millstream
