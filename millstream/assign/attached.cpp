// SPDX-License-Identifier: Apache-2.0
// Attached streams: beside a node's own stream, ids behind all main ones. Nodes with one reuse key share them.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "millstream/assign/chain.h"

namespace millstream {
namespace {

struct Keyed {
  std::vector<StreamId> streams;
  NodeId first;
};

std::string keys_of(const std::vector<AttachedRequest>& requests) {
  std::string out;
  for (const AttachedRequest& r : requests) {
    out += fmt::format("{}{}", out.empty() ? "" : ", ", r.reuse_key.empty() ? "none" : fmt::format("\"{}\"", r.reuse_key));
  }
  return out;
}

}  // namespace

namespace {

// What a reuse key is shared over: the root graph and all calls, or one body of a branch or loop, since a stream
// cannot both run on and be started with a body that may not run or runs again.
std::uint32_t home_of(const Graph& graph, NodeId n) {
  for (ScopeId s = graph.scope_of(n); s.index != 0; s = graph.scope(s).parent) {
    const std::string_view type = graph.type(*graph.scope(s).parent_node);
    if (type != "PartitionedCall" && type != "StatefulPartitionedCall" && type != "StatelessPartitionedCall") return s.index;
  }
  return 0;
}

}  // namespace

Result<StreamAssignment> assign_attached(const Graph& graph, const Target& target, const AssignOptions& options, StreamAssignment on) {
  const auto& wanted = graph.annotations().attached;
  if (wanted.empty()) return on;
  IdVec<NodeId, EngineId> engines;  // empty where no engine synchronises itself
  const auto declares = [](const Engine& e) { return e.self_synchronising; };
  if (std::any_of(target.engines.begin(), target.engines.end(), declares)) {
    MST_TRY(engines, resolve_engines(graph, target, options.excluded_engine));
  }
  const bool single = options.single_stream || options.strategy == Strategy::single;
  std::map<std::pair<std::uint32_t, std::string>, Keyed> by_key;
  for (const NodeId n : graph.order()) {
    const auto& requests = wanted.get(n);
    if (!requests || requests->empty()) continue;
    const auto fail = [&](ErrorCode code, std::string message) {
      Error error{code, std::move(message)};
      if (const auto where = graph.where(n)) error.at(*where);
      return error;
    };
    if (single && !options.attached_in_single_stream) {
      return fail(ErrorCode::attached_streams, fmt::format("{} asks for an attached stream in single-stream mode", graph.name(n)))
          .help("drop the request, leave single-stream mode, or set attached_in_single_stream=true");
    }
    if (graph.dynamic() && !options.attached_in_dynamic) continue;
    if (!on.placement[n]) {
      return fail(ErrorCode::attached_streams, fmt::format("{} asks for an attached stream but has no stream of its own", graph.name(n)))
          .help("only a node that runs can have a part on another stream");
    }
    std::vector<StreamId> mine;
    for (const AttachedRequest& r : *requests) {
      if (r.count < 1 || r.count > 65535) {
        return fail(ErrorCode::bad_attribute, fmt::format("@attached on {}: {} streams cannot be attached", graph.name(n), r.count))
            .help("a count from 1 to 65535");
      }
      Keyed fresh;
      Keyed* from = &fresh;
      if (!r.reuse_key.empty()) from = &by_key.try_emplace({home_of(graph, n), r.reuse_key}, Keyed{{}, n}).first->second;
      if (from->streams.empty()) {
        for (std::int64_t i = 0; i < r.count; ++i) {
          StreamInfo info;
          info.attached = true;
          from->streams.push_back(on.new_stream(std::move(info)));
        }
      } else if (from->streams.size() != static_cast<std::size_t>(r.count)) {
        return fail(ErrorCode::attached_streams,
                    fmt::format("reuse key \"{}\" stands for {} attached streams on {} but for {} on {}", r.reuse_key,
                                from->streams.size(), graph.name(from->first), r.count, graph.name(n)))
            .help("give nodes of one key the same count, or different keys");
      }
      mine.insert(mine.end(), from->streams.begin(), from->streams.end());
    }
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    if (mine.size() > options.attached_per_node) {
      std::string list;
      for (const StreamId s : mine) list += fmt::format("{}{}", list.empty() ? "" : ", ", s.index);
      return fail(ErrorCode::attached_streams, fmt::format("{} has {} attached streams ({}), allowed are {}", graph.name(n), mine.size(),
                                                          list, options.attached_per_node))
          .note(fmt::format("reuse keys: {}", keys_of(*requests)))
          .help("give the requests one reuse key and a count of 1, or raise attached_per_node");
    }
    on.attached.set(n, std::move(mine));
    if (!engines.empty() && target.engines[engines[n]].self_synchronising) on.self_synchronising.push_back(n);
  }
  std::sort(on.self_synchronising.begin(), on.self_synchronising.end());
  return on;
}

}  // namespace millstream
