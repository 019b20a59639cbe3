// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "millstream/report/report_data.h"

namespace millstream {
namespace {

constexpr std::size_t kShownLanes = 16;

// "running 40.000, hand-off 3.000": what took time, in microseconds.
class Causes {
 public:
  void add(std::string_view words, std::uint64_t ns) {
    if (ns != 0) text_ += fmt::format("{}{} {:.3f}", text_.empty() ? "" : ", ", words, static_cast<double>(ns) / 1000);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

const std::array<LaneCause, 7>& lane_causes() {
  static constexpr std::array<LaneCause, 7> kCauses = {{{"run", "running", &LaneUse::run},
                                                        {"sync", "records and waits", &LaneUse::sync},
                                                        {"wait", "waiting for another stream", &LaneUse::wait},
                                                        {"hand_off", "hand-off", &LaneUse::hand_off},
                                                        {"busy", "engine busy", &LaneUse::busy},
                                                        {"before", "not started", &LaneUse::before},
                                                        {"after", "no work left", &LaneUse::after}}};
  return kCauses;
}

std::string to_text(const ReportView& view) {
  std::string out = fmt::format("{}: {:.3f} us, overlap {:.2f}\n", view.what, static_cast<double>(view.total_ns) / 1000, view.overlap);
  Causes path;
  for (std::size_t i = 0; i < view.path_ns.size(); ++i) path.add(to_string(static_cast<PathCause>(i)), view.path_ns[i]);
  out += fmt::format("  critical path: {}\n", path.text());
  for (std::size_t lane = 0; lane < std::min(view.use.size(), kShownLanes); ++lane) {
    Causes causes;
    for (const LaneCause& cause : lane_causes()) causes.add(cause.words, view.use[lane].*cause.ns);
    out += fmt::format("  {}{}: {}\n", fmt::format("stream {}", lane), view.lanes[lane].empty() ? "" : " (" + view.lanes[lane] + ")", causes.text());
  }
  if (view.use.size() > kShownLanes) out += fmt::format("  and {} more\n", view.use.size() - kShownLanes);
  return out;
}

}  // namespace millstream
