// SPDX-License-Identifier: Apache-2.0
// A memory plan against its schedule: a sweep over the arena's bytes in the order of the writers, with clocks of
// its own. Shares with the planner only what a view is (storage.h).
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/memory/memory_plan.h"
#include "millstream/memory/storage.h"

namespace millstream {
namespace {

struct Place {
  std::uint32_t stream = 0;
  std::uint32_t place = 0;  ///< 1 + index in its stream; 0 = never launched
};

using Clock = std::vector<std::uint32_t>;

class MemoryCheck {
 public:
  MemoryCheck(const Graph& graph, const Schedule& schedule, const MemoryPlan& plan)
      : graph_(graph), schedule_(schedule), plan_(plan), storages_(graph) {}

  std::vector<Violation> run() {
    if (!sound_ids()) return std::move(out_);
    check_ranges();
    list_users();
    sweep();
    return std::move(out_);
  }

 private:
  Violation& add(Violation::Kind kind, std::string message) {
    out_.push_back({});
    out_.back().kind = kind;
    out_.back().message = std::move(message);
    return out_.back();
  }
  std::string name(ValueId v) const { return quote_name(graph_.name(v)); }
  std::string name(NodeId n) const { return quote_name(graph_.name(n)); }

  bool sound_ids() {
    if (plan_.buffers.size() != graph_.value_count()) {
      add(Violation::Kind::memory, fmt::format("the memory plan has {} values, the graph {}", plan_.buffers.size(),
                                               graph_.value_count()));
      return false;
    }
    at_ = IdVec<NodeId, Place>(graph_.node_count());
    for (std::uint32_t s = 0; s < schedule_.streams.size(); ++s) {
      const auto& tasks = schedule_.streams[PhysicalStreamId(s)].tasks;
      for (std::uint32_t i = 0; i < tasks.size(); ++i) {
        const bool launch = tasks[i].kind == Task::Kind::launch;
        const bool attached = tasks[i].kind == Task::Kind::attached;
        const bool of_node = tasks[i].names_node();
        if (tasks[i].index >= (of_node ? graph_.node_count() : schedule_.event_count)) {
          add(Violation::Kind::memory, fmt::format("stream {} names {} {}, which does not exist", s, of_node ? "node" : "event",
                                                   tasks[i].index));
          return false;
        }
        if (attached) parts_[tasks[i].node()].places.push_back({s, i + 1});
        if (!launch) continue;
        if (at_[tasks[i].node()].place != 0) {
          add(Violation::Kind::repeated_node, fmt::format("node {} is launched more than once", name(tasks[i].node())));
          return false;
        }
        at_[tasks[i].node()] = {s, i + 1};
      }
    }
    return true;
  }

  void check_ranges() {
    for (const ValueId v : graph_.values()) {
      const auto& buffer = plan_.buffers[v];
      if (!buffer) continue;
      const ValueId root = storages_.root(v);
      if (root != v) {
        if (!plan_.buffers[root] || !(*plan_.buffers[root] == *buffer)) {
          add(Violation::Kind::memory, fmt::format("{} is a view of {}, but they have different buffers", name(v), name(root)));
        }
        continue;
      }
      const auto bytes = storages_.arena_bytes(v);
      if (!bytes) {
        add(Violation::Kind::memory, fmt::format("{} has a buffer, but its bytes do not live in the arena", name(v)));
      } else if (*bytes != buffer->size) {
        add(Violation::Kind::memory, fmt::format("{} takes {} bytes, its buffer has {}", name(v), *bytes, buffer->size));
      }
      if (buffer->offset % 64 != 0) {
        add(Violation::Kind::memory, fmt::format("the buffer of {} at {} is not aligned to 64 bytes", name(v), buffer->offset));
      }
      if (buffer->size > plan_.peak_bytes || buffer->offset > plan_.peak_bytes - buffer->size) {
        add(Violation::Kind::memory, fmt::format("the buffer of {}, {} bytes at {}, leaves the arena of {} bytes", name(v),
                                                 buffer->size, buffer->offset, plan_.peak_bytes));
      }
    }
  }

  // By owner of bytes: the nodes that touch them, through views and from bodies too.
  void list_users() {
    const auto visit = [&](auto&& each) {
      for (const NodeId n : graph_.nodes()) {
        for (const InputRef in : graph_.inputs(n)) {
          if (const auto v = in.get()) each(storages_.root(*v), n);
        }
        for (const ValueId v : graph_.captures(n)) each(storages_.root(v), n);
        for (const ValueId v : graph_.outputs(n)) each(storages_.root(v), n);
      }
    };
    user_begin_.assign(graph_.value_count() + 1, 0);
    visit([&](ValueId v, NodeId) { ++user_begin_[v.index + 1]; });
    for (std::size_t i = 1; i < user_begin_.size(); ++i) user_begin_[i] += user_begin_[i - 1];
    users_.resize(user_begin_.back());
    std::vector<std::uint32_t> next(user_begin_.begin(), user_begin_.end() - 1);
    visit([&](ValueId v, NodeId n) { users_[next[v.index]++] = n; });
    kept_.assign(graph_.value_count(), false);
    for (const ValueId v : graph_.outputs()) kept_[storages_.root(v).index] = true;
  }

  // Runs the schedule, lowest stream first as far as each gets. At each launch its outputs become tenants
  // of their bytes: every use of the tenant before must be known to be done, to the launch and to each attached
  // part of its node. Tenants further back are covered, since a tenant's first use comes behind all uses of the
  // one before it.
  void sweep() {
    const std::size_t width = schedule_.streams.size();
    std::vector<Clock> clocks(width, Clock(width, 0));
    std::vector<Clock> recorded(schedule_.event_count);  // empty: no record that no wait has taken
    std::vector<std::uint32_t> done(width, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t s = 0; s < width; ++s) {
        const auto& tasks = schedule_.streams[PhysicalStreamId(s)].tasks;
        for (; done[s] < tasks.size(); moved = true) {
          const Task& task = tasks[done[s]];
          if (task.kind == Task::Kind::wait) {
            Clock& there = recorded[task.index];
            if (there.empty()) break;
            for (std::size_t t = 0; t < width; ++t) clocks[s][t] = std::max(clocks[s][t], there[t]);
            Clock().swap(there);
          } else if (task.kind == Task::Kind::record) {
            recorded[task.index] = clocks[s];
          } else if (task.kind == Task::Kind::attached) {
            join_in(task.node(), s, clocks[s]);
          } else if (task.kind == Task::Kind::launch) {
            move_in(task.node(), clocks[s]);
          }
          clocks[s][s] = ++done[s];
        }
      }
    }
    for (std::uint32_t s = 0; s < width; ++s) {
      if (done[s] == schedule_.streams[PhysicalStreamId(s)].tasks.size()) continue;
      add(Violation::Kind::deadlock, fmt::format("stream {} never gets past task {}", s, done[s])).streams = {PhysicalStreamId(s)};
    }
  }

  // An attached part uses its node's buffers like the launch does, which may come before it or after.
  void join_in(NodeId n, std::uint32_t stream, const Clock& known) {
    Parts& parts = parts_[n];
    if (!parts.moved_in) parts.early.push_back({stream, known});
    for (const auto& [old, v] : parts.turns) check_turn(old, v, n, stream, known);
  }

  void move_in(NodeId n, const Clock& known) {
    const auto parts = parts_.find(n);
    if (parts != parts_.end()) parts->second.moved_in = true;
    for (const ValueId v : graph_.outputs(n)) {
      if (storages_.root(v) != v || !plan_.buffers[v] || plan_.buffers[v]->size == 0) continue;
      const std::uint64_t begin = plan_.buffers[v]->offset, end = begin + plan_.buffers[v]->size;
      auto it = tenants_.upper_bound(begin);
      if (it != tenants_.begin()) --it;
      std::vector<ValueId> before;
      while (it != tenants_.end() && it->first < end) {
        const std::uint64_t first = it->first;
        const Tenant old = it->second;
        if (old.end <= begin) {
          ++it;
          continue;
        }
        before.push_back(old.value);
        it = tenants_.erase(it);
        if (first < begin) tenants_.emplace(first, Tenant{begin, old.value});
        if (old.end > end) tenants_.emplace(end, old);
      }
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      for (const ValueId old : before) {
        check_turn(old, v, n, at_[n].stream, known);
        if (parts == parts_.end()) continue;
        parts->second.turns.push_back({old, v});
        for (const auto& [stream, clock] : parts->second.early) check_turn(old, v, n, stream, clock);
      }
      tenants_.emplace(begin, Tenant{end, v});
    }
  }

  void check_turn(ValueId old, ValueId v, NodeId writer, std::uint32_t stream, const Clock& known) {
    if (kept_[old.index]) {
      Violation& x = add(Violation::Kind::memory, fmt::format("{} writes {} over {}, a result of the graph", name(writer), name(v), name(old)));
      x.first = graph_.producer(old);
      x.second = writer;
      return;
    }
    for (std::uint32_t i = user_begin_[old.index]; i < user_begin_[old.index + 1]; ++i) {
      const NodeId user = users_[i];
      check_use(old, v, user, at_[user], writer, stream, known);
      const auto parts = parts_.find(user);
      if (parts == parts_.end()) continue;
      for (const Place& at : parts->second.places) check_use(old, v, user, at, writer, stream, known);
    }
  }

  void check_use(ValueId old, ValueId v, NodeId user, const Place& at, NodeId writer, std::uint32_t stream, const Clock& known) {
    if (at.place != 0 && at.place <= known[at.stream]) return;
    Violation& x = add(Violation::Kind::memory,
                       at.place == 0 ? fmt::format("{} writes {} over {}, which {} uses, and no stream launches that",
                                                   name(writer), name(v), name(old), name(user))
                                     : fmt::format("{} on stream {} writes {} over {}, which {} uses on stream {}, and nothing "
                                                   "orders them", name(writer), stream, name(v), name(old), name(user), at.stream));
    x.first = user;
    x.second = writer;
    x.missing_from = user;
    x.missing_to = writer;
    x.streams = {PhysicalStreamId(at.stream)};
    if (stream != at.stream) x.streams.push_back(PhysicalStreamId(stream));
  }

  // A node with attached parts: where those stand, which have run before the launch, and whose bytes it took.
  struct Parts {
    std::vector<Place> places;
    std::vector<std::pair<std::uint32_t, Clock>> early;  // stream, what the part knows
    std::vector<std::pair<ValueId, ValueId>> turns;      // old, new
    bool moved_in = false;
  };

  struct Tenant {
    std::uint64_t end = 0;
    ValueId value;
  };

  const Graph& graph_;
  const Schedule& schedule_;
  const MemoryPlan& plan_;
  const Storages storages_;
  IdVec<NodeId, Place> at_;
  std::map<NodeId, Parts> parts_;
  std::vector<std::uint32_t> user_begin_;
  std::vector<NodeId> users_;
  std::vector<bool> kept_;
  std::map<std::uint64_t, Tenant> tenants_;  // by first byte, disjoint
  std::vector<Violation> out_;
};

}  // namespace

std::vector<Violation> verify(const Graph& graph, const Schedule& schedule, const MemoryPlan& plan) {
  return MemoryCheck(graph, schedule, plan).run();
}

}  // namespace millstream
