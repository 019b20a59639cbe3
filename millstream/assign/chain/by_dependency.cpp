// SPDX-License-Identifier: Apache-2.0
// by-dependency: a cluster goes on where a predecessor ran if it may, else it opens one of its engine's streams.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/assign/chain/state.h"

namespace millstream::chain {
namespace {

class ByDependency {
 public:
  explicit ByDependency(ChainState& s)
      : s_(s), same_engine_(s.clusters.size(), {kNoCluster, false}), temp_(s.clusters.size(), -1),
        root_(s.clusters.size(), kNoCluster), next_(s.target.engines.size(), 0), count_(s.target.engines.size(), 0) {
    max_parallel_.assign(s.target.engines.size(), 1);
    for (const MaxParallel& m : s.options.max_parallel) {
      for (const EngineId e : ids<EngineId>(s.target.engines.size())) {
        if (s.target.engines[e].name == m.engine) max_parallel_[e.index] = m.count;
      }
    }
    find_same_engine();
  }

  void run() {
    bool any = false;
    for (const ClusterId c : ids<ClusterId>(s_.clusters.size())) {
      if (s_.clusters[c].stream != kNoStream || temp_[c.index] >= 0) continue;
      any = true;
      place(c);
    }
    if (any) finish();
  }

 private:
  // Of each cluster: a successor of its own engine, and whether there is another.
  void find_same_engine() {
    for (std::uint32_t i = 0; i < s_.size(); ++i) {
      const std::uint32_t c = s_.cluster_of[s_.nodes[i]];
      if (c == kNoCluster) continue;
      for (std::uint32_t e = s_.edges.pred_begin[i]; e < s_.edges.pred_begin[i + 1]; ++e) {
        const std::uint32_t p = s_.cluster_of[s_.nodes[s_.edges.pred[e]]];
        if (p == kNoCluster || p == c || cluster(p).engine != cluster(c).engine) continue;
        auto& [first, more] = same_engine_[p];
        if (first == kNoCluster) first = c;
        more = more || first != c;
      }
    }
  }

  void place(ClusterId c) {
    std::uint32_t last = kNoCluster;
    for (std::uint32_t m = s_.clusters[c].begin; m < s_.clusters[c].end; ++m) {
      const std::uint32_t i = s_.position[s_.members[m]];
      for (std::uint32_t e = s_.edges.pred_begin[i]; e < s_.edges.pred_begin[i + 1]; ++e) {
        const std::uint32_t p = s_.cluster_of[s_.nodes[s_.edges.pred[e]]];
        if (p == kNoCluster || p == c.index || p == last) continue;
        last = p;
        if (!could_reuse(c, p)) continue;
        if (cluster(p).stream == kNoStream && temp_[p] < 0) open(ClusterId(p));  // ranks need not be topological
        root_[c.index] = root_[p] != kNoCluster ? root_[p] : p;
        temp_[c.index] = 0;
        reuses_.push_back({c.index, p});
        return;
      }
    }
    open(c);
  }

  bool could_reuse(ClusterId c, std::uint32_t p) {
    const Cluster& mine = s_.clusters[c];
    const Cluster& other = cluster(p);
    const auto refuse = [&](const char* why) {
      s_.say(c, [&] { return fmt::format("by-dependency: cannot follow {}: {}", s_.words(other), why); });
      return false;
    };
    if (s_.engine(mine).scheduler != s_.engine(other).scheduler) return refuse("another scheduler runs it");
    if (s_.engine(other).independent) return refuse("its engine is independent");
    if (other.label != 0) return refuse("its stream belongs to a label");
    if (other.pinned) return refuse("its stream is a pinned group's");
    const auto& [first, more] = same_engine_[p];
    if (more || (first != kNoCluster && first != c.index)) return refuse("another consumer of it has its engine");
    if (mine.engine == other.engine || s_.engine(mine).attach) return true;
    if (root_[p] != kNoCluster && cluster(root_[p]).engine == mine.engine) return true;
    return refuse("its engine differs, and this one does not attach");
  }

  void open(ClusterId c) {
    const EngineId e = s_.clusters[c].engine;
    std::uint32_t id = next_[e.index];
    if (id >= max_parallel_[e.index]) id = 0;
    next_[e.index] = id + 1;
    count_[e.index] = std::max(count_[e.index], id + 1);
    temp_[c.index] = static_cast<std::int32_t>(id);
    opened_.push_back(c.index);
  }

  // Engines are laid out by name; the first stream of a called graph is its caller's.
  void finish() {
    std::vector<EngineId> by_name;
    for (const EngineId e : ids<EngineId>(s_.target.engines.size())) {
      if (count_[e.index] != 0) by_name.push_back(e);
    }
    std::sort(by_name.begin(), by_name.end(),
              [&](EngineId a, EngineId b) { return s_.target.engines[a].name < s_.target.engines[b].name; });
    std::vector<std::vector<std::int32_t>> streams(s_.target.engines.size());
    bool callers = s_.default_stream != kNoStream;
    for (const EngineId e : by_name) {
      for (std::uint32_t i = 0; i < count_[e.index]; ++i) {
        StreamInfo info;
        info.engine = e;
        streams[e.index].push_back(callers ? s_.default_stream : s_.new_stream(std::move(info)));
        callers = false;
      }
    }
    for (const std::uint32_t c : opened_) {
      Cluster& made = s_.clusters[ClusterId(c)];
      const auto& of_engine = streams[made.engine.index];
      made.stream = of_engine[static_cast<std::size_t>(temp_[c])];
      s_.say(ClusterId(c), [&] {
        std::string text = fmt::format("by-dependency: no predecessor's stream can be reused: stream {} of {} for engine {}, {}",
                                       temp_[c] + 1, of_engine.size(), s_.engine(made).name, s_.stream_word(made.stream));
        if (made.stream == s_.default_stream) text += ", which is the caller's";
        if (of_engine.size() == max_parallel_[made.engine.index]) {
          text += fmt::format(" (max_parallel of the engine is {})", max_parallel_[made.engine.index]);
        }
        return text;
      });
    }
    for (const auto& [c, p] : reuses_) {
      Cluster& follower = s_.clusters[ClusterId(c)];
      follower.stream = cluster(root_[c]).stream;
      s_.say(ClusterId(c), [&, p = p, c = c] {
        const Cluster& before = cluster(p);
        const char* why = follower.engine == before.engine    ? "same engine, no other consumer of that engine"
                          : s_.engine(follower).attach        ? "its engine attaches to any predecessor's stream"
                                                              : "it returns to its engine's stream, which the predecessor had joined";
        return fmt::format("by-dependency: reuses {} of {}: {}", s_.stream_word(follower.stream), s_.words(before), why);
      });
    }
  }

  const Cluster& cluster(std::uint32_t c) const { return s_.clusters[ClusterId(c)]; }

  ChainState& s_;
  std::vector<std::pair<std::uint32_t, bool>> same_engine_;
  std::vector<std::int32_t> temp_;   // number among its engine's new streams; 0 for one that follows
  std::vector<std::uint32_t> root_;  // whose stream a follower has
  std::vector<std::uint32_t> next_, count_, max_parallel_;
  std::vector<std::uint32_t> opened_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> reuses_;
};

}  // namespace

Result<void> by_dependency(ChainState& s) {
  ByDependency(s).run();
  return {};
}

}  // namespace millstream::chain
