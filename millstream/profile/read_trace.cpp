// SPDX-License-Identifier: Apache-2.0
// Chrome traces: the device's tasks in msprof_*.json and trace_view.json, and our own traces of runs. Read without a tree of
// the whole file, and with times as they stand, not as doubles.
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "millstream/profile/json_text.h"
#include "millstream/profile/records.h"

namespace millstream {
namespace {

constexpr std::string_view kDevice = "Ascend Hardware";

/// An event as far as it matters here; what is missing stays empty.
struct Event {
  std::string name, phase, category, process, task_type;
  std::string pid;
  std::optional<std::int64_t> tid, model, task, batch;
  std::optional<std::int64_t> start_ns, dur_ns;
};

// An id as a number or as digits in quotes; anything else is none.
std::optional<std::int64_t> id_of(std::string_view text) {
  std::int64_t n = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  constexpr std::int64_t kNoId = 4294967295;
  if (code != std::errc() || stop != text.data() + text.size() || n == kNoId) return std::nullopt;
  return n;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : json_(text, file) {}

  Result<std::vector<ProfileRecord>> read() {
    if (json_.peek() == '{') {
      bool found = false;
      MST_TRY_VOID(json_.object([&](const std::string& key) -> Result<void> {
        if (key != "traceEvents") return json_.skip();
        found = true;
        return events();
      }));
      if (!found) return json_.error_here("this JSON has no \"traceEvents\"").help("a trace is an array of events, or an object with them in \"traceEvents\"");
    } else {
      MST_TRY_VOID(events());
    }
    MST_TRY_VOID(json_.end());
    return records();
  }

 private:
  Result<void> events() {
    return json_.array([&]() -> Result<void> {
      MST_TRY(Event e, event());
      if (e.phase == "M" && !e.process.empty()) processes_[e.pid] = e.process;
      if (e.phase == "X") events_.push_back(std::move(e));
      return {};
    });
  }

  Result<Event> event() {
    Event e;
    const auto text = [&](std::string& to) -> Result<void> {
      MST_TRY(to, json_.scalar());
      return {};
    };
    const auto id = [&](std::optional<std::int64_t>& to) -> Result<void> {
      MST_TRY(const std::string value, json_.scalar());
      to = id_of(value);
      return {};
    };
    const auto time = [&](std::string_view key, std::optional<std::int64_t>& to) -> Result<void> {
      json_.peek();
      const std::size_t at = json_.offset();
      MST_TRY(const std::string value, json_.scalar());
      to = parse_ns(value, 3);
      if (!to) return json_.error_at(at, fmt::format("{} \"{}\" is not a time", key, value.substr(0, 60)));
      return {};
    };
    MST_TRY_VOID(json_.object([&](const std::string& key) -> Result<void> {
      if (key == "name") return text(e.name);
      if (key == "ph") return text(e.phase);
      if (key == "cat") return text(e.category);
      if (key == "pid") return text(e.pid);
      if (key == "tid") return id(e.tid);
      if (key == "ts") return time(key, e.start_ns);
      if (key == "dur") return time(key, e.dur_ns);
      if (key != "args" || json_.peek() != '{') return json_.skip();
      return json_.object([&](const std::string& arg) -> Result<void> {
        if (arg == "name") return json_.is_container() ? json_.skip() : text(e.process);
        if (arg == "Task Type") return text(e.task_type);
        if (arg == "Model Id") return id(e.model);
        if (arg == "Task Id") return id(e.task);
        if (arg == "Batch Id") return id(e.batch);
        return json_.skip();
      });
    }));
    if (e.phase == "M" && e.name != "process_name") e.process.clear();
    return e;
  }

  // What names the processes may stand behind their events.
  Result<std::vector<ProfileRecord>> records() {
    std::vector<ProfileRecord> out;
    for (Event& e : events_) {
      const auto process = processes_.find(e.pid);
      const bool ours = e.category == "launch";
      if (!ours && (process == processes_.end() || process->second != kDevice)) continue;
      if (!e.dur_ns) continue;
      ProfileRecord r;
      r.source = ProfileSource::trace;
      r.op_name = std::move(e.name);
      r.task_type = std::move(e.task_type);
      r.model = e.model;
      r.stream = e.tid;
      r.task = e.task;
      r.batch = e.batch;
      r.start_ns = e.start_ns;
      r.dur_ns = *e.dur_ns;
      out.push_back(std::move(r));
    }
    if (out.empty()) {
      return json_.error_at(0, "this trace has no tasks of a device").help(
          fmt::format("they belong to the process \"{}\" (msprof_*.json, trace_view.json), or have the category \"launch\" (millstream run --trace)", kDevice));
    }
    return out;
  }

  JsonText json_;
  std::vector<Event> events_;
  std::map<std::string, std::string> processes_;  // by pid as it is written
};

}  // namespace

Result<std::vector<ProfileRecord>> read_trace(std::string_view text, const std::string& file) { return Reader(text, file).read(); }

}  // namespace millstream
