// SPDX-License-Identifier: Apache-2.0
// What it takes to run a plan with real kernels: kernels and workers, and inputs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millstream/backend/backend.h"
#include "millstream/backend/workers.h"
#include "millstream/exec/executable.h"
#include "tools/millstream/common.h"

namespace millstream::cli {

/// A plan bound to kernels and workers. Its parts hold references to each other: never moved.
struct Engine {
  Schedule schedule;
  MemoryPlan memory;
  std::unique_ptr<Backend> backend;
  std::optional<Executable> executable;
  std::uint32_t workers = 1;
  std::uint32_t threads = 1;
};

Result<std::unique_ptr<Engine>> make_engine(const Graph& graph, Schedule schedule, MemoryPlan memory, const KernelTable& kernels,
                                            std::uint32_t workers, std::uint32_t threads, std::optional<std::uint64_t> max_bytes);

/// NAME=FILE, each name once. `option` is for the message.
Result<std::map<std::string, std::string>> files_by_name(const std::vector<std::string>& texts, std::string_view option);

/// The graph's inputs from NAME=FILE, the rest invented; says which unless `quiet`.
Result<std::vector<Tensor>> read_inputs(const Graph& graph, const std::vector<std::string>& texts, bool quiet);

/// Errors: what `check` finds first in a schedule that is not safe to run.
Result<void> refuse_unsafe(const Graph& graph, const Schedule& schedule, const Target& target);

}  // namespace millstream::cli
