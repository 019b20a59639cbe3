// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/profile_option.h"

#include <fmt/format.h>

#include "millstream/import/file_bytes.h"

namespace millstream::cli {
namespace {

// The records of all files, one behind the other. Errors: io, syntax with the place.
Result<std::vector<ProfileRecord>> read_profiles(const ProfileOption& option) {
  std::vector<ProfileRecord> out;
  for (const std::string& file : option.files) {
    MST_TRY(const std::string text, read_text(file));
    MST_TRY(std::vector<ProfileRecord> records, read_records(text, file));
    out.insert(out.end(), std::make_move_iterator(records.begin()), std::make_move_iterator(records.end()));
  }
  return out;
}

}  // namespace

void add_profile_option(CLI::App& app, ProfileOption& option) {
  app.add_option("--profile", option.files, "FILE: measured times of nodes (op_summary, kernel_details, task_time .csv; msprof or our own trace .json); repeatable")
      ->allow_extra_args(false);
}

Result<Measured> measure(Graph& graph, const ProfileOption& option) {
  Measured out;
  if (option.files.empty()) return out;
  MST_TRY(out.records, read_profiles(option));
  out.joined = join(graph, out.records);
  out.given = graph.annotations().cost;
  for (const NodeId n : graph.nodes()) {
    if (const auto& us = out.joined->duration_us[n]) graph.annotations().cost.set(n, *us);
  }
  complain(to_string(*out.joined, graph) + "\n");
  if (out.joined->nodes == 0) {
    warn(Error{ErrorCode::no_effect, "the profile names no node of this model"}.help("records belong to nodes by name; millstream convert MODEL - lists the names"));
  }
  return out;
}

Result<MeasuredCompile> compile_measured(Loaded& loaded, const ResolvedPipeline& pipeline, const ProfileOption& option, DumpFiles* dumps) {
  MeasuredCompile out;
  CompileSteps steps;
  steps.dumps = dumps;
  steps.prepared = [&](Graph& graph) -> Result<void> {
    MST_TRY(out.measured, measure(graph, option));
    return {};
  };
  MST_TRY(out.compiled, compile_loaded(loaded, pipeline, steps));
  return out;
}

void warn_of_idle_profile(const ProfileOption& option, std::string_view why) {
  if (option.files.empty()) return;
  warn(Error{ErrorCode::no_effect, fmt::format("--profile without effect: {}", why)}.help("give it where the model is compiled"));
}

Json profile_json(const std::optional<Joined>& joined) {
  if (!joined) return nullptr;
  return {{"nodes", joined->nodes}, {"records", joined->records}, {"named_records", joined->named_records},
          {"joined_us", static_cast<double>(joined->joined_ns) / 1000}, {"named_us", static_cast<double>(joined->named_ns) / 1000}};
}

}  // namespace millstream::cli
