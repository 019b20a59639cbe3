// SPDX-License-Identifier: Apache-2.0
// Reads lanes. Grammar: docs/text-format.md.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "millstream/graph/lexer.h"
#include "millstream/graph/text.h"
#include "millstream/schedule/schedule.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;
// A short text must not claim unbounded memory: an event number is below this or the number of events' tasks, a
// label's below this.
constexpr std::uint64_t kEventNumbers = std::uint64_t{1} << 20;

// A task of control flow before it is known in which order streams stand.
struct Control {
  ControlTask task;
  Token first_target;
};

struct Lane {
  std::uint64_t logical = 0;
  bool relay = false;
  bool huge = false;
  std::vector<Task> tasks;
  Token number;
};

class LaneParser {
 public:
  LaneParser(std::string_view text, const Graph& graph, const std::string& file, std::uint32_t first_line)
      : lex_(text, file, first_line), graph_(graph), node_of_(graph.strings().size(), kNone) {
    for (const NodeId n : graph.nodes()) {
      const auto id = graph.strings().find(graph.name(n));
      if (id && node_of_[id->index] == kNone) node_of_[id->index] = n.index;
    }
  }

  Result<Schedule> parse() {
    MST_TRY_VOID(lex_.skip_newlines());
    while (!lex_.at_end()) {
      MST_TRY_VOID(lane());
      MST_TRY_VOID(lex_.skip_newlines());
    }
    return finish();
  }

 private:
  Result<std::uint64_t> number(std::string_view what) {
    const Token token = lex_.peek();
    MST_TRY(const std::int64_t value, lex_.expect_integer(what));
    if (value < 0 || value >= kNone) return lex_.error(token, fmt::format("{} lies outside 0..{}", what, kNone - 1));
    return static_cast<std::uint64_t>(value);
  }

  Result<void> lane() {
    MST_TRY_VOID(lex_.expect("stream"));
    const Token token = lex_.peek();
    MST_TRY(const std::uint64_t stream, number("the stream's number"));
    Lane lane;
    lane.number = token;
    lane.logical = stream;
    if (lex_.at("of")) {
      MST_TRY_VOID(lex_.next());
      MST_TRY(lane.logical, number("the logical stream's number"));
    }
    if (lex_.at("relay")) {
      MST_TRY_VOID(lex_.next());
      lane.relay = true;
    }
    if (lex_.at("huge")) {
      MST_TRY_VOID(lex_.next());
      lane.huge = true;
    }
    MST_TRY_VOID(lex_.expect(":"));
    while (lex_.peek().kind != Token::Kind::newline && !lex_.at_end()) {
      MST_TRY_VOID(task(lane.tasks));
    }
    numbers_.push_back({stream, static_cast<std::uint32_t>(lanes_.size())});
    lanes_.push_back(std::move(lane));
    return {};
  }

  Result<NodeId> node() {
    const Token token = lex_.peek();
    MST_TRY(const std::string name, lex_.expect_name("a node, !eN or ?eN"));
    const auto id = graph_.strings().find(name);
    if (!id || id->index >= node_of_.size() || node_of_[id->index] == kNone) {
      return lex_.error(token, fmt::format("the graph has no node {}", quote_name(name)));
    }
    return NodeId(node_of_[id->index]);
  }

  Result<void> task(std::vector<Task>& tasks) {
    const bool asks = lex_.at("?");
    if (asks || lex_.at("!")) {
      const Token sign = lex_.peek();
      MST_TRY_VOID(lex_.next());
      if (asks && lex_.at(">")) {
        if (tasks.empty() || tasks.back().kind != Task::Kind::launch) return lex_.error(sign, "?> stands behind a node");
        return control(tasks, true);
      }
      MST_TRY(const EventId event, this->event());
      tasks.push_back(asks ? Task::wait(event) : Task::record(event));
      return {};
    }
    if (lex_.at("+")) {
      MST_TRY_VOID(lex_.next());
      const bool itself = lex_.at("+");
      if (itself) MST_TRY_VOID(lex_.next());
      MST_TRY(const NodeId n, node());
      tasks.push_back(itself ? Task::self_attached(n) : Task::attached(n));
      return {};
    }
    MST_TRY(const NodeId n, node());
    tasks.push_back(Task::launch(n));
    if (lex_.at(":") || lex_.at(">")) return control(tasks, false);
    return {};
  }

  // The sign and the targets behind a node that was read as a launch.
  Result<void> control(std::vector<Task>& tasks, bool chooses) {
    const bool label = lex_.at(":");
    MST_TRY_VOID(lex_.next());
    Control c{{tasks.back().node(), {}}, lex_.peek()};
    const bool streams = !c.first_target.text.empty() && c.first_target.text[0] == 's';
    for (;;) {
      MST_TRY(const std::uint32_t target, numbered(streams && !label ? "s" : "L", streams && !label ? "a stream such as s0" : "a label such as L0"));
      if (!streams && target >= kEventNumbers) return lex_.error(c.first_target, fmt::format("label L{} is too large; number labels from 0", target));
      c.task.targets.push_back(target);
      if (label || !lex_.at("|")) break;
      MST_TRY_VOID(lex_.next());
    }
    using Kind = Task::Kind;
    const Kind kind = label     ? Kind::label
                      : streams ? (chooses ? Kind::stream_switch : Kind::activate)
                                : (chooses || c.task.targets.size() > 1 ? Kind::branch : Kind::jump);
    tasks.back() = {kind, static_cast<std::uint32_t>(controls_.size())};
    controls_.push_back(std::move(c));
    return {};
  }

  Result<std::uint32_t> numbered(std::string_view letter, std::string_view what) {
    const Token token = lex_.peek();
    std::uint32_t value = 0;
    const char* end = token.text.data() + token.text.size();
    bool good = token.kind == Token::Kind::word && token.text.size() > 1 && token.text.substr(0, 1) == letter;
    if (good) {
      const auto [stop, code] = std::from_chars(token.text.data() + 1, end, value);
      good = code == std::errc() && stop == end && value != kNone;
    }
    if (!good) return lex_.error(token, fmt::format("expected {}", what));
    MST_TRY_VOID(lex_.next());
    return value;
  }

  Result<EventId> event() {
    const Token token = lex_.peek();
    const bool notify = token.kind == Token::Kind::word && token.text.substr(0, 1) == "n";
    MST_TRY(const std::uint32_t value, numbered(notify ? "n" : "e", "an event such as e0 behind ! or ?"));
    if (event_tasks_ != 0 && notify != notify_) return lex_.error(token, "a schedule has events (e0) or notifies (n0), not both");
    notify_ = notify;
    ++event_tasks_;
    if (event_tasks_ == 1 || value > largest_) {
      largest_ = value;
      largest_token_ = token;
    }
    return EventId(value);
  }

  Result<Schedule> finish() {
    std::sort(numbers_.begin(), numbers_.end());
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const Lane& lane = lanes_[numbers_[i].second];
      if (i > 0 && numbers_[i].first == numbers_[i - 1].first) {
        return lex_.error(lane.number, fmt::format("stream {} is given twice", numbers_[i].first));
      }
      if (numbers_[i].first != i) {
        return lex_.error(lane.number, fmt::format("stream {} is given but stream {} is not; number streams from 0 without a gap",
                                                   numbers_[i].first, i));
      }
      if (lane.logical >= numbers_.size()) {
        return lex_.error(lane.number, fmt::format("stream {} is a piece of logical stream {}, but {} streams hold at most {} logical ones",
                                                   i, lane.logical, numbers_.size(), numbers_.size()));
      }
    }
    if (event_tasks_ != 0 && largest_ >= std::max<std::uint64_t>(kEventNumbers, event_tasks_)) {
      return lex_.error(largest_token_, fmt::format("event e{} is too large; number events from 0", largest_));
    }
    Schedule out;
    for (const auto& [number, index] : numbers_) {
      const StreamId logical(lanes_[index].logical);
      out.logical_streams = std::max(out.logical_streams, logical.index + 1);
      PhysicalStream stream{logical, std::move(lanes_[index].tasks), lanes_[index].relay, lanes_[index].huge};
      for (Task& t : stream.tasks) {
        if (!t.is_control()) continue;
        Control& c = controls_[t.index];
        t.index = static_cast<std::uint32_t>(out.controls.size());
        for (const std::uint32_t target : c.task.targets) {
          if (t.kind == Task::Kind::label) out.label_count = std::max(out.label_count, target + 1);
          if ((t.kind == Task::Kind::activate || t.kind == Task::Kind::stream_switch) && target >= numbers_.size()) {
            return lex_.error(c.first_target, fmt::format("stream s{} is started, but there are {} streams", target, numbers_.size()));
          }
        }
        out.controls.push_back(std::move(c.task));
      }
      out.streams.push_back(std::move(stream));
    }
    if (notify_) out.event_kind = EventKind::notify;
    out.event_count = event_tasks_ == 0 ? 0 : largest_ + 1;
    return out;
  }

  Lexer lex_;
  const Graph& graph_;
  std::vector<std::uint32_t> node_of_;  // by interned name
  std::vector<Lane> lanes_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> numbers_;  // stream number, lane
  std::vector<Control> controls_;
  bool notify_ = false;
  std::uint64_t event_tasks_ = 0;
  std::uint32_t largest_ = 0;
  Token largest_token_;
};

}  // namespace

Result<Schedule> parse_schedule(std::string_view text, const Graph& graph, const std::string& file, std::uint32_t first_line) {
  return LaneParser(text, graph, file, first_line).parse();
}

}  // namespace millstream
