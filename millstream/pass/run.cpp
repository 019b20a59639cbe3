// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "millstream/pass/exclusive_engines.h"
#include "millstream/pass/foreign_code.h"
#include "millstream/pass/pass.h"
#include "millstream/pass/session.h"

namespace millstream {
namespace {

// The root, and in a graph of unknown shapes every body of known shapes that such a graph launches.
std::vector<ScopeId> given_graphs(const Graph& graph) {
  std::vector<ScopeId> out = {ScopeId(0)};
  for (const ScopeId s : graph.scopes()) {
    if (s.index != 0 && !graph.scope(s).dynamic && graph.scope(graph.scope(s).parent).dynamic) out.push_back(s);
  }
  return out;
}

std::string_view name_of(const Graph& graph, ScopeId s) {
  return s.index == 0 ? std::string_view(graph.name()) : std::string_view(graph.scope(s).name);
}

std::string words(const StreamPass& pass) {
  return pass.library.empty() ? fmt::format("stream pass \"{}\"", pass.name) : fmt::format("stream pass \"{}\" of \"{}\"", pass.name, pass.library);
}

// Streams without a node vanish; main ones come first, each kind in its order.
void renumber(const Graph& graph, StreamAssignment& on) {
  IdVec<StreamId, std::uint8_t> used(on.streams.size(), 0);
  for (const auto& p : on.placement) {
    if (p) used[p->stream] = 1;
  }
  if (!on.attached.empty()) {
    for (const NodeId n : graph.nodes()) {
      if (const auto& list = on.attached.get(n)) {
        for (const StreamId s : *list) used[s] = 1;
      }
    }
  }
  IdVec<StreamId, StreamId> to(on.streams.size());
  IdVec<StreamId, StreamInfo> kept;
  for (const bool attached : {false, true}) {
    for (const StreamId s : ids<StreamId>(on.streams.size())) {
      if (used[s] != 0 && on.streams[s].attached == attached) to[s] = kept.push_back(on.streams[s]);
    }
  }
  on.streams = std::move(kept);
  for (auto& p : on.placement) {
    if (p) p->stream = to[p->stream];
  }
  if (on.attached.empty()) return;
  for (const NodeId n : graph.nodes()) {
    if (!on.attached.get(n)) continue;
    std::vector<StreamId> list = *on.attached.get(n);
    for (StreamId& s : list) s = to[s];
    std::sort(list.begin(), list.end());
    on.attached.set(n, std::move(list));
  }
}

void explain(Error& error, const PassSession& session) {
  for (const std::string& text : session.messages()) error.note(text);
  for (const std::string& text : session.refused()) error.note("refused: " + text);
  if (const std::size_t more = session.refused_count() - session.refused().size(); more != 0) error.note(fmt::format("{} more calls were refused", more));
}

class Runner {
 public:
  Runner(const Graph& graph, const Target& target, const PassOptions& options, StreamAssignment on)
      : graph_(graph), options_(options), on_(std::move(on)), exclusive_(graph, target) {}

  Result<void> run(ScopeId scope, const StreamPass& pass, RuleId rule) {
    observe(false, pass, scope);
    const auto start = std::chrono::steady_clock::now();
    PassSession session(graph_, scope, on_, rule, options_.values);
    const std::int32_t code = [&] {
      const ForeignCodeScope scope_of_pass(ErrorCode::stream_pass, words(pass));
      return pass.run(pass.self, &host_api(), session.graph(), session.context());
    }();
    StreamAssignment after = session.take();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    bool keep = true;
    const std::string where = fmt::format("on graph \"{}\"", name_of(graph_, scope));
    if (code != 0) {
      Error error{ErrorCode::stream_pass, fmt::format("{} failed with {} {}", words(pass), code, where)};
      explain(error, session);
      MST_TRY_VOID(undo(std::move(error)));
      keep = false;
    } else if (session.refused_count() != 0) {
      Error error{ErrorCode::stream_pass, fmt::format("{} returned success {}, but calls of it were refused", words(pass), where)};
      explain(error, session);
      if (options_.policy == PassPolicy::fail) {
        on_.warnings.push_back(std::move(error).help("let the pass look at what SetStreamId returns; what it did set stands"));
      } else {
        MST_TRY_VOID(undo(std::move(error)));
        keep = false;
      }
    }
    if (keep) {
      StreamAssignment dense = after;
      renumber(graph_, dense);
      if (std::vector<Error> wrong = verify(graph_, dense); !wrong.empty()) {
        Error error{ErrorCode::stream_pass, fmt::format("{} left streams that do not fit {}", words(pass), where)};
        error.note(wrong.front().message);
        MST_TRY_VOID(undo(std::move(error)));
        keep = false;
      }
    }
    if (keep) {
      if (auto shared = exclusive_.newly_shared(on_, after)) {
        shared->note(fmt::format("{} did it {}", words(pass), where))
            .help("the plan is right, but on that stream one waits for the other; a stream of its own for the engine avoids it");
        on_.warnings.push_back(*std::move(shared));
      }
      accept(std::move(after), rule, took.count());
    }
    observe(true, pass, scope);
    return {};
  }

  StreamAssignment finish(const Target& target) {
    if (!changed_) return std::move(on_);
    for (const auto& p : on_.placement) {
      if (p && p->decided_by.index >= first_rule_) on_.streams[p->stream].assigned_by_pass = true;
    }
    renumber(graph_, on_);
    if (on_.estimate) on_.estimate = estimate(graph_, target, on_);
    return std::move(on_);
  }

  RuleId add_rule(const StreamPass& pass) {
    on_.rules.push_back(fmt::format("pass {}", pass.label));
    on_.reasons.push_back(pass.library.empty() ? "a stream pass put it there" : fmt::format("a stream pass of \"{}\" put it there", pass.library));
    on_.reports.push_back({on_.rules.back(), 0, 0, 0});
    if (first_rule_ == kNone) {
      first_rule_ = on_.rules.size() - 1;
      first_report_ = on_.reports.size() - 1;
    }
    return RuleId(on_.rules.size() - 1);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  void observe(bool after, const StreamPass& pass, ScopeId scope) const {
    if (options_.observe) options_.observe({after, pass, graph_, scope, on_});
  }
  // The error, or as a warning where the policy is to go on.
  Result<void> undo(Error error) {
    if (options_.policy != PassPolicy::rollback) {
      return std::move(error.help("mend the pass, leave its library out, or go on without it: --pass-policy rollback"));
    }
    error.message += "; what it did is undone";
    on_.warnings.push_back(std::move(error));
    return {};
  }
  void accept(StreamAssignment after, RuleId rule, double ms) {
    RuleReport& report = on_.reports[first_report_ + (rule.index - first_rule_)];
    report.milliseconds += ms;
    for (const NodeId n : graph_.nodes()) {
      const auto &was = on_.placement[n], &is = after.placement[n];
      if (!is || (was && was->stream == is->stream)) {
        after.placement[n] = was;  // there and back again is no decision
        continue;
      }
      changed_ = true;
      (was ? report.nodes_moved : report.nodes_placed) += 1;
    }
    if (after.streams.size() != on_.streams.size()) changed_ = true;
    on_.placement = std::move(after.placement);
    on_.streams = std::move(after.streams);
  }

  const Graph& graph_;
  const PassOptions& options_;
  StreamAssignment on_;
  std::size_t first_rule_ = kNone;
  std::size_t first_report_ = 0;
  bool changed_ = false;
  ExclusiveEngines exclusive_;
};

}  // namespace

Result<StreamAssignment> run_passes(const Graph& graph, const Target& target, StreamAssignment on, const PassOptions& options) {
  if (options.passes.empty()) return on;
  Runner runner(graph, target, options, std::move(on));
  std::vector<RuleId> rules;
  for (const StreamPass& pass : options.passes) rules.push_back(runner.add_rule(pass));
  for (const ScopeId scope : given_graphs(graph)) {
    for (std::size_t i = 0; i < options.passes.size(); ++i) MST_TRY_VOID(runner.run(scope, options.passes[i], rules[i]));
  }
  return runner.finish(target);
}

}  // namespace millstream
