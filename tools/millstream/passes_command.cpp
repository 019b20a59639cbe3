// SPDX-License-Identifier: Apache-2.0
// passes: which stream passes a compilation would run, without running one.
#include <cstdio>

#include <fmt/format.h>

#include "tools/millstream/pass_options.h"

namespace millstream::cli {
namespace {

struct PassesCommand {
  PassArguments passes;
  bool list = false;
  bool json = false;
};

Result<int> run_passes_command(const PassesCommand& command) {
  MST_TRY(const PassRequest request, resolve_passes(command.passes));
  MST_TRY(LoadedPasses loaded, load_passes(request.sources));
  loaded.warnings.insert(loaded.warnings.begin(), request.warnings.begin(), request.warnings.end());
  std::vector<std::string> searched;
  for (const std::string& folder : request.sources.folders) searched.push_back(folder + "/vendors/*/custom_fusion_passes");
  if (command.json) {
    Json json = {{"passes", Json::array()}, {"libraries", Json::array()}, {"searched", searched}, {"warnings", Json::array()}};
    for (const StreamPass& pass : loaded.passes) json["passes"].push_back({{"name", pass.name}, {"label", pass.label}, {"library", pass.library}});
    for (const LibraryReport& library : loaded.libraries) json["libraries"].push_back(library_json(library));
    for (const Error& w : loaded.warnings) json["warnings"].push_back(error_json(w));
    print_json(json);
    return 0;
  }
  for (const Error& w : loaded.warnings) warn(w);
  for (const LibraryReport& library : loaded.libraries) {
    if (library.error) continue;
    fmt::print("{}\n", library.path);
    for (const std::string& pass : library.passes) fmt::print("  {}\n", pass);
  }
  if (loaded.passes.empty()) {
    fmt::print("no stream passes{}{}\n", searched.empty() ? "" : "; looked in ", fmt::join(searched, ", "));
  } else {
    fmt::print("{}, in the order they run\n", counted(loaded.passes.size(), "stream pass", "stream passes"));
  }
  return 0;
}

}  // namespace

void add_passes(CLI::App& app, int& status) {
  auto command = std::make_shared<PassesCommand>();
  CLI::App* sub = app.add_subcommand("passes", "list the stream passes that a compilation runs");
  sub->add_flag("--list", command->list, "list them (the default); libraries are loaded, passes do not run");
  add_pass_options(*sub, command->passes);
  sub->add_flag("--json", command->json, "print one JSON object on stdout");
  sub->callback(runner(command, run_passes_command, status));
}

}  // namespace millstream::cli
