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

  /// A count, or "none".
  Result<std::uint32_t> limit(std::string_view key, std::uint32_t otherwise) const {
    const toml::node* node = table_.get(key);
    if (node != nullptr && node->value_exact<std::string>() == "none") return kNoLimit;
    if (node != nullptr && !node->is_integer()) {
      return wrong(*node, key, fmt::format("a whole number in 1..{} or \"none\"", kNoLimit));
    }
    MST_TRY(const std::int64_t n, integer(key, otherwise, 1, kNoLimit));
    return static_cast<std::uint32_t>(n);
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

Result<Limits> read_limits(const Section& s) {
  MST_TRY_VOID(s.known({"streams", "tasks_per_stream", "events", "notifies", "huge_streams", "tasks_per_huge_stream"}));
  Limits l;
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

Result<Costs> read_costs(const Section& s) {
  MST_TRY_VOID(s.known({"launch_us", "record_us", "wait_us", "hand_off_us", "flops_per_us",
                        "bytes_per_us", "total_bytes_per_us", "parallel_us", "parallel_share"}));
  Costs c;
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
    t.task_counts.push_back({std::string(type), static_cast<std::uint32_t>(n)});
  }
  // The parser hands keys over by name; the longest pattern is the most precise one and comes first.
  std::stable_sort(t.task_counts.begin(), t.task_counts.end(),
                   [](const TaskCount& a, const TaskCount& b) { return a.op_type.size() > b.op_type.size(); });
  return {};
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
  MST_TRY_VOID(top.known({"name", "cores", "engines_in_input", "limits", "costs", "tasks", "engine"}));
  Target t;
  MST_TRY(t.name, top.text("name", ""));
  if (t.name.empty()) {
    return bad(file, root.source(), "the target has no name").help("name = \"...\"");
  }
  MST_TRY(const std::int64_t cores, top.integer("cores", 1, 1, 65536));
  t.cores = static_cast<std::uint32_t>(cores);
  MST_TRY(t.engines_in_input, top.truth("engines_in_input", false));
  if (const toml::node* node = root.get("limits")) {
    if (!node->is_table()) return top.wrong(*node, "limits", "a table");
    MST_TRY(t.limits, read_limits(Section(*node->as_table(), "limits", file)));
  }
  if (const toml::node* node = root.get("costs")) {
    if (!node->is_table()) return top.wrong(*node, "costs", "a table");
    MST_TRY(t.costs, read_costs(Section(*node->as_table(), "costs", file)));
  }
  if (const toml::node* node = root.get("tasks")) {
    if (!node->is_table()) return top.wrong(*node, "tasks", "a table");
    MST_TRY_VOID(read_tasks(Section(*node->as_table(), "tasks", file), t));
  }
  const toml::node* engines = root.get("engine");
  const toml::array* list = engines == nullptr ? nullptr : engines->as_array();
  if (list == nullptr || list->empty() || list->size() > kMaxEngines) {
    return bad(file, engines == nullptr ? root.source() : engines->source(),
               fmt::format("the target needs 1..{} engines", kMaxEngines))
        .help("[[engine]] with a name and op_types, one a row");
  }
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
  std::string known;
  for (const BuiltinTarget& b : builtin_targets()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", b.name);
  }
  return Error{ErrorCode::bad_target,
               fmt::format("there is no target \"{}\": no built-in and no file has that name", path)}
      .help(fmt::format("built-in targets: {}; or give the path of a TOML file, or of an engine table (.json)", known));
}

}  // namespace millstream
