// SPDX-License-Identifier: Apache-2.0
// The operator types that stand for control flow, and what task each becomes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "millstream/graph/graph.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

/// The kind of task that a node of control flow becomes; none for other nodes. Asks each type once.
class ControlTypes {
 public:
  explicit ControlTypes(const Graph& graph) : graph_(graph) {
    using Kind = Task::Kind;
    const std::pair<std::string_view, Kind> table[] = {
        {"LabelSet", Kind::label},           {"LabelGoto", Kind::jump},     {"LabelGotoEx", Kind::jump},
        {"LabelSwitchByIndex", Kind::branch}, {"LabelSwitch", Kind::branch}, {"StreamActive", Kind::activate},
        {"StreamSwitch", Kind::stream_switch}, {"StreamSwitchN", Kind::stream_switch}};
    for (const auto& [type, kind] : table) {
      if (const auto id = graph.strings().find(type)) types_.push_back({*id, kind});
    }
  }
  bool none() const { return types_.empty(); }
  std::optional<Task::Kind> of(NodeId n) const {
    for (const auto& [type, kind] : types_) {
      if (graph_.type_id(n) == type) return kind;
    }
    return std::nullopt;
  }
  /// Labels, jumps and branches: control flow inside one stream.
  bool moves_inside(NodeId n) const {
    const auto kind = of(n);
    return kind && (*kind == Task::Kind::label || *kind == Task::Kind::jump || *kind == Task::Kind::branch);
  }

 private:
  const Graph& graph_;
  std::vector<std::pair<StringId, Task::Kind>> types_;
};

/// Labels that a LabelSet, LabelGoto(Ex), LabelSwitch or LabelSwitchByIndex names, as written; none without.
inline std::vector<std::int64_t> label_numbers(const Graph& graph, NodeId n) {
  const Attrs& attrs = graph.attrs(n);
  if (attrs.has("label_list")) return attrs.get_ints("label_list");
  if (attrs.has("label_index")) return {attrs.get_int("label_index", -1)};
  return {};
}

}  // namespace millstream
