// SPDX-License-Identifier: Apache-2.0
// Which engine runs each node.
#include <algorithm>

#include <fmt/format.h>

#include "millstream/target/target.h"

namespace millstream {
namespace {

bool matches(std::string_view pattern, std::string_view type) {
  if (!pattern.empty() && pattern.back() == '*') {
    pattern.remove_suffix(1);
    return type.substr(0, pattern.size()) == pattern;
  }
  return pattern == type;
}

// A "!" pattern excludes whatever the others say.
bool takes(const Engine& engine, std::string_view type) {
  bool named = false;
  for (const std::string& p : engine.op_types) {
    if (p.front() == '!') {
      if (matches(std::string_view(p).substr(1), type)) return false;
    } else {
      named = named || matches(p, type);
    }
  }
  return named;
}

constexpr std::uint32_t kUnasked = 0xffffffffu;
constexpr std::uint32_t kNobody = 0xfffffffeu;
constexpr std::size_t kMaxListed = 20;

}  // namespace

Result<IdVec<NodeId, EngineId>> resolve_engines(const Graph& graph, const Target& target,
                                                std::string_view excluded) {
  std::vector<EngineId> by_preference;
  for (const EngineId e : ids<EngineId>(target.engines.size())) by_preference.push_back(e);
  std::stable_sort(by_preference.begin(), by_preference.end(), [&](EngineId a, EngineId b) {
    return target.engines[a].preference < target.engines[b].preference;
  });

  // Types and engine names are interned: each is looked up once, not once a node.
  std::vector<std::uint32_t> by_type(graph.strings().size(), kUnasked);
  std::vector<std::uint32_t> by_name;
  const auto named = [&](StringId name) {
    if (by_name.empty()) by_name.assign(graph.strings().size(), kUnasked);
    std::uint32_t& found = by_name[name.index];
    if (found == kUnasked) {
      found = kNobody;
      for (const EngineId e : ids<EngineId>(target.engines.size())) {
        if (target.engines[e].name == graph.text(name)) found = e.index;
      }
    }
    return found;
  };

  IdVec<NodeId, EngineId> out(graph.node_count());
  std::vector<std::string> refused;
  std::size_t refusals = 0;
  const auto refuse = [&](std::string text) {
    if (++refusals <= kMaxListed) refused.push_back(std::move(text));
  };
  const Engine* left_out = nullptr;
  for (const Engine& e : target.engines) {
    if (e.name == excluded) left_out = &e;
  }
  const bool pinned = !graph.annotations().engine.empty();
  for (const NodeId n : graph.nodes()) {
    if (pinned) {
      if (const auto& name = graph.annotations().engine.get(n)) {
        const std::uint32_t e = named(*name);
        if (e != kNobody) {
          out[n] = EngineId(e);
          continue;
        }
        // A target without the input's engines (the host CPU) runs every node itself.
        if (target.engines_in_input) {
          refuse(fmt::format("{} of type {}: target {} has no engine \"{}\"", graph.name(n),
                             graph.type(n), target.name, graph.text(*name)));
          continue;
        }
      }
    }
    std::uint32_t& found = by_type[graph.type_id(n).index];
    if (found == kUnasked) {
      found = kNobody;
      for (const EngineId e : by_preference) {
        if (target.engines[e].name != excluded && takes(target.engines[e], graph.type(n))) {
          found = e.index;
          break;
        }
      }
    }
    if (found == kNobody) {
      if (left_out != nullptr && takes(*left_out, graph.type(n))) {
        refuse(fmt::format("{} of type {}: of target {} only {} takes this type, which option excluded_engine or engine_type leaves out",
                           graph.name(n), graph.type(n), target.name, left_out->name));
      } else {
        refuse(fmt::format("{} of type {}: no engine of target {} takes this type", graph.name(n), graph.type(n), target.name));
      }
      continue;
    }
    out[n] = EngineId(found);
  }
  if (refusals == 0) return out;

  Error error{ErrorCode::unsupported_operator,
              fmt::format("no engine supports {} of {} nodes", refusals, graph.node_count())};
  for (std::string& text : refused) error.note(std::move(text));
  if (refusals > kMaxListed) error.note(fmt::format("and {} more", refusals - kMaxListed));
  std::string names;
  for (const Engine& e : target.engines) {
    if (&e == left_out) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", e.name);
  }
  return std::move(error.help(fmt::format("engines of target {}{}: {}; add the type to op_types of one", target.name,
                                          left_out == nullptr ? "" : fmt::format(" without {}", left_out->name), names)));
}

std::uint32_t Target::tasks_of(std::string_view op_type) const {
  for (const TaskCount& row : task_counts) {
    const std::string_view pattern = row.op_type;
    const bool open = !pattern.empty() && pattern.back() == '*';
    const std::string_view head = open ? pattern.substr(0, pattern.size() - 1) : pattern;
    if (open ? op_type.substr(0, head.size()) == head : op_type == head) return row.tasks;
  }
  return tasks_per_node;
}

}  // namespace millstream
