// SPDX-License-Identifier: Apache-2.0
// Target to TOML: parse_target reads it back as the same value.
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "millstream/target/target.h"

namespace millstream {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// TOML wants a point or an exponent in a float; fmt prints the shortest text that reads back the same.
std::string number(double x) {
  if (std::isinf(x)) return "inf";
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string limit(std::uint32_t n) {
  return n == std::numeric_limits<std::uint32_t>::max() ? "\"none\"" : fmt::format("{}", n);
}

std::string device_section(const Profile& p) {
  std::string out = fmt::format(
      "\n[device]\nname = {}\ndevices = {}\nmax_streams = {}\nmax_events = {}\nmax_notifies = {}\nmax_labels = {}\nmax_models = {}\n"
      "least_priority = {}\ngreatest_priority = {}\ntasks_per_stream = {}\ntasks_per_huge_stream = {}\n",
      quoted(p.name), p.devices, limit(p.max_streams), limit(p.max_events), limit(p.max_notifies), limit(p.max_labels),
      limit(p.max_models), p.least_priority, p.greatest_priority, limit(p.tasks_per_stream), limit(p.tasks_per_huge_stream));
  out += fmt::format(
      "workers = {}\nhost_helps = {}\ncallback_threads = {}\nevent_wait_ms = {}\norphan_wait_ms = {}\ncallback_stall_ms = {}\n"
      "priority_age = {}\nmax_tasks_per_execution = {}\ndefault_stream_failure_mode = {}\n",
      p.workers, p.host_helps, p.callback_threads, p.event_wait_ms, p.orphan_wait_ms, p.callback_stall_ms, p.priority_age,
      p.max_tasks_per_execution, p.default_stream_failure_mode);
  if (p.delay_seed) out += fmt::format("delay_seed = {}\n", *p.delay_seed);
  if (!p.engine_slots.empty()) out += fmt::format("engine_slots = [{}]\n", fmt::join(p.engine_slots, ", "));
  return out + fmt::format(
                   "launch_us = {}\nrecord_us = {}\nwait_us = {}\nhand_off_us = {}\ncopy_bytes_per_us = {}\ncallback_us = {}\n"
                   "switch_us = {}\n",
                   number(p.launch_us), number(p.record_us), number(p.wait_us), number(p.hand_off_us), number(p.copy_bytes_per_us),
                   number(p.callback_us), number(p.switch_us));
}

}  // namespace

std::string to_toml(const Target& t) {
  std::string out = fmt::format("name = {}\ncores = {}\nengines_in_input = {}\n", quoted(t.name),
                                t.cores, t.engines_in_input);
  out += fmt::format("\n[limits]\nstreams = {}\ntasks_per_stream = {}\nevents = {}\nnotifies = {}\n",
                     limit(t.limits.streams), limit(t.limits.tasks_per_stream),
                     limit(t.limits.events), limit(t.limits.notifies));
  if (t.limits.huge_streams != 0) {
    out += fmt::format("huge_streams = {}\n", t.limits.huge_streams);
  }
  if (t.limits.tasks_per_huge_stream != 0) {
    out += fmt::format("tasks_per_huge_stream = {}\n", limit(t.limits.tasks_per_huge_stream));
  }
  const Costs& c = t.costs;
  out += fmt::format(
      "\n[costs]\nlaunch_us = {}\nrecord_us = {}\nwait_us = {}\nhand_off_us = {}\nflops_per_us = {}\n"
      "bytes_per_us = {}\ntotal_bytes_per_us = {}\nparallel_us = {}\nparallel_share = {}\n",
      number(c.launch_us), number(c.record_us), number(c.wait_us), number(c.hand_off_us),
      number(c.flops_per_us), number(c.bytes_per_us), number(c.total_bytes_per_us),
      number(c.parallel_us), number(c.parallel_share));
  out += fmt::format("\n[tasks]\ndefault = {}\n", t.tasks_per_node);
  for (const TaskCount& row : t.task_counts) out += fmt::format("{} = {}\n", quoted(row.op_type), row.tasks);
  out += device_section(t.device);
  for (const Engine& e : t.engines) {
    out += fmt::format(
        "\n[[engine]]\nname = {}\nscheduler = {}\nindependent = {}\nattach = {}\nskip = {}\n"
        "{}preference = {}\nunits = {}\nop_types = [",
        quoted(e.name), quoted(e.scheduler), e.independent, e.attach, e.skip,
        e.self_synchronising ? "self_synchronising = true\n" : "", e.preference,
        number(e.units));
    for (std::size_t i = 0; i < e.op_types.size(); ++i) {
      out += fmt::format("{}{}", i == 0 ? "" : ", ", quoted(e.op_types[i]));
    }
    out += "]\n";
  }
  return out;
}

}  // namespace millstream
