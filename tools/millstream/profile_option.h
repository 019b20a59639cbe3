// SPDX-License-Identifier: Apache-2.0
// --profile: measured times in place of the cost model's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "millstream/profile/join.h"
#include "tools/millstream/common.h"

namespace millstream::cli {

struct ProfileOption {
  std::vector<std::string> files;
};
void add_profile_option(CLI::App& app, ProfileOption& option);

/// What a profile says of a graph: its records, which nodes they belong to (none without files), and what those nodes
/// cost by the graph itself, of which the hash of a plan is made.
struct Measured {
  std::vector<ProfileRecord> records;
  std::optional<Joined> joined;
  SideTable<NodeId, double> given;
};
/// Nodes that the records name cost what was measured, whatever they cost before. Says on stderr how many nodes and how
/// much time they are; warns when there are none.
Result<Measured> measure(Graph& graph, const ProfileOption& option);

/// compile_loaded with measured costs in between; they stay in the graph.
struct MeasuredCompile {
  Compiled compiled;
  Measured measured;
};
Result<MeasuredCompile> compile_measured(Loaded& loaded, const ResolvedPipeline& pipeline, const ProfileOption& option, DumpFiles* dumps = nullptr);

/// Says that a profile, if one is given, changes nothing, and why.
void warn_of_idle_profile(const ProfileOption& option, std::string_view why);

/// {"nodes": 12, "records": 24, "named_records": 30, "joined_us": ..., "named_us": ...}, or null.
Json profile_json(const std::optional<Joined>& joined);

}  // namespace millstream::cli
