// SPDX-License-Identifier: Apache-2.0
// One case of the data suite (SCHEMA.md) as values of ours, and what running it showed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "millstream/compile/compile.h"

namespace millstream::cases {

using Json = nlohmann::json;

enum class Preset : std::uint8_t { ours, ge2023 };

struct Case {
  std::string name;
  std::string stage;
  Preset preset = Preset::ours;
  bool optional = false;  ///< "scope": "optional", the only legal skip
  Json json;              ///< as read: options, expectations, steps

  Graph graph;            ///< root and subgraphs, as scopes
  Target target;
  /// Given clusters by scope: the name of each, and its members in listed order; in the order of cluster_order.
  struct Cluster {
    std::string name;
    ScopeId scope;
    std::vector<NodeId> nodes;
  };
  std::vector<Cluster> clusters;
  std::vector<std::int64_t> streams;  ///< by node: preassigned stream, -1: none

  bool has_option(const char* key) const { return json.at("options").contains(key); }
  const Json& option(const char* key) const { return json.at("options").at(key); }
  std::vector<std::string> phases() const;  ///< of `phases`
  std::string_view name_of(NodeId n) const { return graph.name(n); }
};

/// Errors: syntax, with the file's name and what is wrong.
Result<Case> load_case(const std::string& path);

/// The options of a preset with those of the case's that both presets share.
Result<CompileOptions> options_of(const Case& c, Preset preset);

/// Preassigned streams as an assignment; at least `least` streams.
StreamAssignment given_streams(const Case& c, std::size_t least);

using Pair = std::pair<std::string, std::string>;

struct Sync {
  Pair pair;
  std::int64_t id = 0;
};

struct Inserted {
  std::string name, type, after;
  std::set<std::int64_t> active_streams;
};

/// What a run showed. What a stage does not produce stays absent, and an expectation about it fails.
struct Outcome {
  std::optional<Error> error;
  std::optional<std::map<std::string, std::int64_t>> node_streams;  ///< -1: none
  std::optional<std::int64_t> stream_num;
  std::optional<bool> changed, graph_unchanged, send_recv_balanced;
  std::optional<std::int64_t> unassigned_end_on;
  // attached streams
  std::optional<std::map<std::string, std::vector<std::int64_t>>> attached;
  std::optional<std::int64_t> total_stream_num, main_stream_num;
  // synchronisation
  std::optional<std::vector<Sync>> syncs;
  std::optional<std::int64_t> event_num, notify_num, event_num_after_optimize, event_num_2023, total_nodes;
  std::optional<std::string> sync_type;
  std::optional<std::vector<Inserted>> inserted;
  // splitting
  std::optional<std::map<std::string, std::int64_t>> node_physical;
  std::optional<std::map<std::int64_t, std::int64_t>> split_map;
  std::optional<std::vector<Pair>> split_syncs;
  std::optional<std::int64_t> physical_stream_num;
  std::optional<std::vector<std::int64_t>> huge_streams;
  std::optional<bool> warning;
  // activation
  std::optional<std::map<std::string, std::set<std::int64_t>>> active_streams;
  std::optional<std::set<std::int64_t>> activated_streams;
  std::optional<std::set<Pair>> loop_syncs;
  // pre-pass
  std::optional<std::set<Pair>> control_edges;
  // summary and steps
  std::optional<Json> summary;
  std::vector<std::string> failed_steps;
  bool ran_steps = false;
};

Outcome run_logical(const Case& c, const CompileOptions& options);  ///< logical, dynamic, attached
Outcome run_sync(const Case& c, const CompileOptions& options);
Outcome run_split(const Case& c, const CompileOptions& options);    ///< split, activate
Outcome run_whole(const Case& c, const CompileOptions& options);    ///< e2e
Outcome run_steps(const Case& c);                                   ///< runtime
Outcome run_prepass(const Case& c, const CompileOptions& options);

struct Mismatch {
  std::string key, expected, got;
};

/// Each expectation of a block that the outcome does not meet.
std::vector<Mismatch> compare(const Case& c, const Json& block, const Outcome& outcome);

/// Kept pairs, their count, and the kind of event.
void show_syncs(const Case& c, const SyncPlan& plan, Outcome& outcome);
/// Counts of events by kind: the other kind has none.
void show_count(EventKind kind, std::size_t count, Outcome& outcome);

/// Adds what the streams of `on` show: node_streams, stream_num and attached streams.
void show_streams(const Case& c, const StreamAssignment& on, Outcome& outcome);

}  // namespace millstream::cases
