// SPDX-License-Identifier: Apache-2.0
// Stream passes on the command line: where their libraries are looked for, and loading them.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "millstream/pass/load.h"
#include "tools/millstream/common.h"

namespace millstream::cli {

void add_pass_options(CLI::App& app, PassArguments& arguments);

/// What the arguments and the environment (docs/passes.md) ask for. Warnings about the environment go to `sources.warnings`.
struct PassRequest {
  PassSources sources;
  PassPolicy policy = PassPolicy::fail;
  std::vector<Error> warnings;
};
Result<PassRequest> resolve_passes(const PassArguments& arguments);

/// Loads them, and says on stderr which.
Result<LoadedPasses> load_requested(const PassRequest& request);

Json library_json(const LibraryReport& report);

}  // namespace millstream::cli
