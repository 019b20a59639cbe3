// SPDX-License-Identifier: Apache-2.0
// --profile: measured times in place of the cost model's.
#pragma once

#include <string>
#include <vector>

#include "millstream/profile/join.h"
#include "tools/millstream/common.h"

namespace millstream::cli {

struct ProfileOption {
  std::vector<std::string> files;
};
void add_profile_option(CLI::App& app, ProfileOption& option);

/// The records of all files, one behind the other. Errors: io, syntax with the place.
Result<std::vector<ProfileRecord>> read_profiles(const ProfileOption& option);

/// Nodes that the records name cost what was measured, whatever they cost before: what it returns were their costs. Says on
/// stderr how many nodes and how much time they are; warns when there are none.
using GivenCosts = SideTable<NodeId, double>;
GivenCosts give_costs(Graph& graph, const Joined& joined);

/// compile_loaded with measured costs in between; they stay in the graph. `given`: what the graph said itself, which
/// the hash of a plan is made of.
struct MeasuredCompile {
  Compiled compiled;
  std::optional<Joined> joined;
  GivenCosts given;
};
Result<MeasuredCompile> compile_measured(Loaded& loaded, const ResolvedPipeline& pipeline, const ProfileOption& option, DumpFiles* dumps = nullptr);

/// {"nodes": 12, "records": 24, "named_records": 30, "joined_us": ..., "named_us": ...}, or null.
Json profile_json(const std::optional<Joined>& joined);

}  // namespace millstream::cli
