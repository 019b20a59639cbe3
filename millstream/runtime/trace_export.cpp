// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/trace_export.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millstream::rt {
namespace {

// One run of one task.
struct Ran {
  TraceEvent began;
  std::uint64_t submitted_ns;
  std::uint64_t end_ns;
};

// Tasks that ran, by start, then stream. A tape's task runs many times after one submit. A task that executes a model only
// waits for the execution's end: it is shown as long as the execution lasts.
std::vector<Ran> runs_of(std::span<const TraceEvent> events) {
  using Place = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;
  std::map<Place, std::uint64_t> submitted;
  std::map<Place, const TraceEvent*> open;
  std::map<std::uint64_t, TraceEvent> executions;  // by the execution's serial: its task, from the submit on
  std::vector<Ran> out;
  for (const TraceEvent& e : events) {
    if (e.task == TaskKind::marker) continue;
    if (e.task == TaskKind::execute) {
      if (e.kind == TraceEvent::Kind::submitted) executions[e.object] = e;
      const auto it = executions.find(e.object);
      if (it == executions.end()) continue;  // submitted before the trace
      TraceEvent& task = it->second;
      if (e.kind == TraceEvent::Kind::execution_begin) {
        submitted[{task.stream, 0, task.sequence}] = std::exchange(task.time_ns, e.time_ns);
        task.execution = e.execution;
      }
      if (e.kind == TraceEvent::Kind::execution_end) out.push_back({task, submitted.at({task.stream, 0, task.sequence}), e.time_ns});
      continue;
    }
    const Place place{e.stream, e.model_serial, e.sequence};
    if (e.kind == TraceEvent::Kind::submitted || e.kind == TraceEvent::Kind::recorded) submitted[place] = e.time_ns;
    if (e.kind == TraceEvent::Kind::began) open[place] = &e;
    if (e.kind != TraceEvent::Kind::ended) continue;
    const auto it = open.find(place);
    if (it == open.end()) continue;  // it began before the trace
    const auto at = submitted.find(place);
    out.push_back({*it->second, at == submitted.end() ? it->second->time_ns : at->second, e.time_ns});
    open.erase(it);
  }
  std::stable_sort(out.begin(), out.end(), [](const Ran& a, const Ran& b) {
    return std::pair(a.began.time_ns, a.began.stream) < std::pair(b.began.time_ns, b.began.stream);
  });
  return out;
}

double us(std::uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

// A cell: quoted when it holds what separates cells.
std::string cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string to_chrome_json(std::span<const TraceEvent> events, std::uint32_t device) {
  using nlohmann::json;
  const std::vector<Ran> runs = runs_of(events);
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  bool first = true;
  const auto add = [&](const json& event) {
    out += first ? "\n" : ",\n";
    first = false;
    out += event.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  add({{"ph", "M"}, {"name", "process_name"}, {"pid", device}, {"args", {{"name", fmt::format("device {}", device)}}}});
  std::set<std::uint32_t> streams;
  for (const Ran& r : runs) streams.insert(r.began.stream);
  for (const std::uint32_t s : streams) {
    add({{"ph", "M"}, {"name", "thread_name"}, {"pid", device}, {"tid", s}, {"args", {{"name", fmt::format("Stream {}", s)}}}});
  }
  std::map<std::uint64_t, const Ran*> records;  // the last one of each object
  std::uint64_t arrows = 0;
  for (const Ran& r : runs) {
    const TraceEvent& e = r.began;
    json args = {{"task", e.sequence}, {"context", e.context}, {"worker", e.worker}, {"submitted_us", us(r.submitted_ns)}};
    if (e.model != TraceEvent::kNoModel) args["model"] = e.model;
    if (e.execution != 0) args["execution"] = e.execution;
    add({{"ph", "X"}, {"name", e.name}, {"cat", to_string(e.task)}, {"pid", device}, {"tid", e.stream}, {"ts", us(e.time_ns)},
         {"dur", us(r.end_ns - e.time_ns)}, {"args", std::move(args)}});
    const bool records_it = e.task == TaskKind::record || e.task == TaskKind::site_record;
    const bool waits = e.task == TaskKind::wait || e.task == TaskKind::site_wait;
    if (e.object == 0 || (!records_it && !waits)) continue;
    if (records_it) {
      records[e.object] = &r;
      continue;
    }
    const auto from = records.find(e.object);
    if (from == records.end()) continue;
    add({{"ph", "s"}, {"name", "sync"}, {"cat", "sync"}, {"id", ++arrows}, {"pid", device}, {"tid", from->second->began.stream}, {"ts", us(from->second->began.time_ns)}});
    add({{"ph", "f"}, {"bp", "e"}, {"name", "sync"}, {"cat", "sync"}, {"id", arrows}, {"pid", device}, {"tid", e.stream}, {"ts", us(e.time_ns)}});
  }
  return out + "\n]}\n";
}

std::string to_op_summary_csv(std::span<const TraceEvent> events, std::uint32_t device) {
  std::string out =
      "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)\n";
  std::map<std::uint32_t, std::uint64_t> ended;  // by stream: what came before
  for (const Ran& r : runs_of(events)) {
    const TraceEvent& e = r.began;
    const auto before = ended.find(e.stream);
    const std::uint64_t wait = before == ended.end() || e.time_ns < before->second ? 0 : e.time_ns - before->second;
    ended[e.stream] = r.end_ns;
    if (e.task != TaskKind::kernel && e.task != TaskKind::host_func) continue;
    // A model of 4294967295: none. The tab keeps spreadsheets from rounding.
    out += fmt::format("{},{},{},{},{},{},N/A,{},{:.3f}\t,{:.3f},{:.3f}\n", device, e.model, e.sequence, e.stream, cell(e.name), cell(e.name),
                       e.task == TaskKind::kernel ? "AI_CORE" : "AI_CPU", us(e.time_ns), us(r.end_ns - e.time_ns), us(wait));
  }
  return out;
}

}  // namespace millstream::rt
