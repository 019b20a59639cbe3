// SPDX-License-Identifier: Apache-2.0
// Exact waits of an assignment by vector clocks.
#include <algorithm>

#include "millstream/assign/predict.h"

namespace millstream {
namespace {

constexpr std::uint32_t kNoSlot = 0xffffffffu;

// Clock rows of nodes that a foreign lane still has to read; a row is used again after its last reader.
class ClockPool {
 public:
  explicit ClockPool(std::uint32_t lanes) : lanes_(lanes) {}
  std::uint32_t* row(std::uint32_t slot) { return rows_.data() + std::size_t{slot} * lanes_; }
  std::uint32_t take() {
    if (!free_.empty()) {
      const std::uint32_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    rows_.resize(rows_.size() + lanes_);
    return static_cast<std::uint32_t>(rows_.size() / lanes_ - 1);
  }
  void give_back(std::uint32_t slot) { free_.push_back(slot); }

 private:
  std::uint32_t lanes_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> free_;
};

// Without clocks: one wait for each lane a node reads from, for its last node there.
std::vector<LanePair> rough_pairs(const TaskGraph& tasks, const Lanes& lanes) {
  std::vector<LanePair> kept;
  std::vector<NodeId> foreign;
  for (const NodeId v : tasks.order()) {
    foreign.clear();
    for (const NodeId u : tasks.predecessors(v)) {
      if (lanes.of[u] != lanes.of[v]) foreign.push_back(u);
    }
    std::sort(foreign.begin(), foreign.end(), [&](NodeId a, NodeId b) {
      return lanes.of[a] != lanes.of[b] ? lanes.of[a] < lanes.of[b]
                                        : tasks.rank_in_order(a) > tasks.rank_in_order(b);
    });
    const std::size_t first = kept.size();
    for (std::size_t i = 0; i < foreign.size(); ++i) {
      if (i == 0 || lanes.of[foreign[i]] != lanes.of[foreign[i - 1]]) kept.push_back({foreign[i], v});
    }
    std::sort(kept.begin() + static_cast<std::ptrdiff_t>(first), kept.end(),
              [&](const LanePair& a, const LanePair& b) {
                return tasks.rank_in_order(a.from) < tasks.rank_in_order(b.from);
              });
  }
  return kept;
}

}  // namespace

std::vector<LanePair> exact_pairs(const TaskGraph& tasks, const Lanes& lanes) {
  if (lanes.count <= 1) return {};
  if (lanes.count > kMaxClockLanes) return rough_pairs(tasks, lanes);
  const std::uint32_t width = lanes.count;
  const std::size_t n = tasks.node_count();
  IdVec<NodeId, std::uint32_t> position(n, 0);  // on its lane, from 1; 0 = not yet reached
  IdVec<NodeId, std::uint32_t> readers(n, 0);
  IdVec<NodeId, std::uint32_t> slot(n, kNoSlot);
  for (const NodeId v : tasks.order()) {
    for (const NodeId u : tasks.predecessors(v)) {
      if (lanes.of[u] != lanes.of[v]) ++readers[u];
    }
  }

  // now[s * width + a]: the position on lane a that lane s knows to be complete.
  std::vector<std::uint32_t> now(std::size_t{width} * width, 0);
  ClockPool pool(width);
  std::vector<LanePair> kept;
  std::vector<NodeId> foreign;
  for (const NodeId v : tasks.order()) {
    const std::uint32_t s = lanes.of[v];
    std::uint32_t* clock = now.data() + std::size_t{s} * width;
    foreign.clear();
    for (const NodeId u : tasks.predecessors(v)) {
      if (lanes.of[u] != s && position[u] != 0) foreign.push_back(u);
    }
    if (foreign.size() > 1) {
      std::sort(foreign.begin(), foreign.end(),
                [&](NodeId a, NodeId b) { return tasks.rank_in_order(a) > tasks.rank_in_order(b); });
    }
    const std::size_t first = kept.size();
    for (const NodeId u : foreign) {
      const std::uint32_t from = lanes.of[u];
      const std::uint32_t row = slot[u];
      if (clock[from] < position[u]) {
        kept.push_back({u, v});
        const std::uint32_t* other = pool.row(row);
        for (std::uint32_t a = 0; a < width; ++a) clock[a] = std::max(clock[a], other[a]);
      }
      if (--readers[u] == 0) {
        pool.give_back(row);
        slot[u] = kNoSlot;
      }
    }
    std::reverse(kept.begin() + static_cast<std::ptrdiff_t>(first), kept.end());
    position[v] = ++clock[s];
    if (readers[v] != 0) {
      slot[v] = pool.take();
      std::copy(clock, clock + width, pool.row(slot[v]));
    }
  }
  return kept;
}

}  // namespace millstream
