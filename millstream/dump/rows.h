// SPDX-License-Identifier: Apache-2.0
// A graph as the rows of a dump: what readers hand to the Assembler, the other way round.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "millstream/dump/dump.h"
#include "millstream/dump/node_row.h"

namespace millstream::dump {

/// One graph of a dump: the root, then scopes, then bodies (a body behind the one that holds it).
struct RowSection {
  std::string name;
  const Graph* graph = nullptr;
  ScopeId scope;
  bool body = false;
};

class Rows {
 public:
  /// Graph and schedule must outlive it.
  Rows(const Graph& graph, const DumpStreams& streams);

  const std::vector<RowSection>& sections() const { return sections_; }
  /// The section's nodes: what stands for inputs and constants first, then in list order, with a schedule in execution order.
  /// `alone`: no other section is printed with it, so what its nodes need from outside stands there as Data.
  void for_each(std::size_t section, bool alone, const std::function<void(const NodeRow&)>& visit) const;
  /// Node and output of each output of the section's graph; -1 where the order of names alone does not say it.
  std::vector<std::pair<std::string, std::int64_t>> outputs(std::size_t section) const;
  std::vector<std::string> inputs(std::size_t section) const;

 private:
  struct SyncAt {
    std::uint32_t node;
    bool after;
    PhysicalStreamId stream;
    std::uint32_t task;
  };
  /// What rows need to know of one graph, found once.
  struct Names {
    std::vector<std::string> of_value;             // by value that no node makes: its row's name
    std::vector<bool> read;                        // by value: some row reads it
    std::vector<bool> precedes;                    // by node: a control edge leaves it
    std::vector<std::vector<NodeId>> after;        // by node: where its control edges come from; empty without edges
    std::vector<std::uint32_t> position;           // by node, in execution order
    std::vector<std::pair<std::uint32_t, std::int64_t>> results;  // value, place; only where names do not say them
  };

  void add_bodies(const Graph& graph, const std::string& prefix);
  std::string section_name(std::string wanted);
  Names names_of(const Graph& graph) const;
  const Names& names(const RowSection& section) const { return names_.at(section.graph); }
  void place_sync(const Graph& graph, const Schedule& schedule);
  void value_rows(const RowSection& section, const Names& known, std::int64_t& next_id, const std::function<void(const NodeRow&)>& visit) const;
  void outside_rows(const RowSection& section, const Names& known, std::int64_t& next_id, const std::function<void(const NodeRow&)>& visit) const;
  void fill(const RowSection& section, const Names& known, NodeId n, NodeRow& row) const;
  void fill_attrs(const RowSection& section, const Names& known, NodeId n, NodeRow& row) const;
  void add_results(const Names& known, ValueId first, std::size_t count, NodeRow& row) const;
  void sync_rows(const Graph& graph, NodeId n, bool after, std::int64_t& next_id, std::vector<std::string>& waits,
                 const std::function<void(const NodeRow&)>& visit) const;
  std::string source(const Graph& graph, const Names& known, ValueId v) const;
  bool shows_schedule(const RowSection& section) const { return streams_.schedule != nullptr && !section.body; }

  const DumpStreams& streams_;
  std::vector<RowSection> sections_;
  std::set<std::string> used_names_;
  std::map<const Graph*, Names> names_;            // looked up only
  std::map<const Graph*, std::size_t> section_of_;  // of bodies; looked up only
  std::vector<std::vector<NodeId>> by_scope_;       // the root graph's nodes as they are listed
  std::vector<std::pair<std::uint32_t, std::uint32_t>> scopes_of_;  // node, scope; ascending
  std::vector<SyncAt> sync_;  // by node and side
  std::vector<std::int64_t> lane_;  // by node; -1
  std::vector<std::pair<std::uint32_t, std::int64_t>> attached_, self_attached_;  // node, stream; ascending
  std::vector<std::pair<std::uint32_t, std::vector<std::int64_t>>> starts_;       // node, streams
  std::vector<std::pair<std::uint32_t, PhysicalStreamId>> relays_;                // switch, relay stream; by switch
  IdVec<PhysicalStreamId, std::vector<std::string>> task_names_;
};

}  // namespace millstream::dump
