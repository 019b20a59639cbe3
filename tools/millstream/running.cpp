// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/running.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "millstream/graph/text.h"

namespace millstream::cli {

Result<std::unique_ptr<Engine>> make_engine(const Graph& graph, Schedule schedule, MemoryPlan memory, const KernelTable& kernels,
                                            std::uint32_t workers, std::uint32_t threads, std::optional<std::uint64_t> max_bytes) {
  auto engine = std::make_unique<Engine>();
  engine->schedule = std::move(schedule);
  engine->memory = std::move(memory);
  engine->workers = workers;
  engine->threads = threads;
  engine->backend = make_cpu_backend(workers, threads);
  InstantiateOptions options;
  options.threads_per_op = static_cast<int>(threads);
  options.max_bytes = max_bytes;
  MST_TRY(Executable executable, instantiate(graph, engine->schedule, engine->memory, kernels, *engine->backend, options));
  engine->executable = std::move(executable);
  return engine;
}

namespace {

// What a run uses where the user gives nothing: arange(n)/n for floats, zeros otherwise.
Result<Tensor> default_input(const Graph& graph, ValueId v) {
  const TensorDesc& desc = graph.desc(v);
  if (!desc.is_static()) {
    std::string symbols;
    if (desc.shape) {
      for (const Dim& d : *desc.shape) {
        if (!d.known() && !d.symbol.empty()) symbols += fmt::format(" --dim {}=N", d.symbol);
      }
    }
    return Error{ErrorCode::usage, fmt::format("input \"{}\" is {}: its size is open", graph.name(v), to_string(desc))}.help(
        fmt::format("give --input {}=FILE.npy{}{}", graph.name(v), symbols.empty() ? "" : " or bind its dimensions with", symbols));
  }
  Tensor t;
  try {
    t = Tensor(desc.dtype, desc.dims());
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory_limit, fmt::format("input \"{}\": the system does not give the {} bytes of {}", graph.name(v),
                                                      *desc.bytes(), to_string(desc))};
  }
  if (desc.dtype == DType::f32) {
    auto x = t.as_mutable<float>();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<double>(i) / static_cast<double>(x.size()));
  } else if (desc.dtype == DType::f64) {
    auto x = t.as_mutable<double>();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) / static_cast<double>(x.size());
  }
  return t;
}

}  // namespace

Result<std::map<std::string, std::string>> files_by_name(const std::vector<std::string>& texts, std::string_view option) {
  std::map<std::string, std::string> files;
  for (const std::string& text : texts) {
    MST_TRY(auto pair, split_assignment(text, option));
    if (!files.emplace(pair).second) return Error{ErrorCode::usage, fmt::format("{} {} is given twice", option, pair.first)};
  }
  return files;
}

Result<std::vector<Tensor>> read_inputs(const Graph& graph, const std::vector<std::string>& texts, bool quiet) {
  MST_TRY(auto files, files_by_name(texts, "--input"));
  std::vector<Tensor> inputs;
  std::string invented;
  for (const ValueId v : graph.inputs()) {
    auto it = files.find(std::string(graph.name(v)));
    if (it != files.end()) {
      MST_TRY(Tensor t, read_tensor(it->second));
      inputs.push_back(std::move(t));
      files.erase(it);
    } else {
      MST_TRY(Tensor t, default_input(graph, v));
      inputs.push_back(std::move(t));
      invented += fmt::format("{}{} {}", invented.empty() ? "" : ", ", quote_name(graph.name(v)), to_string(graph.desc(v)));
    }
  }
  if (!files.empty()) {
    std::string known;
    for (const ValueId v : graph.inputs()) known += fmt::format("{}{}", known.empty() ? "" : ", ", quote_name(graph.name(v)));
    return Error{ErrorCode::usage, fmt::format("the model has no input \"{}\"", files.begin()->first)}.help("its inputs: " + known);
  }
  if (!invented.empty() && !quiet) fmt::print("inputs     {}: arange(n)/n (zeros for integers); --input NAME=FILE gives real data\n", invented);
  return inputs;
}

namespace {

ErrorCode code_of(Violation::Kind kind) {
  switch (kind) {
    case Violation::Kind::deadlock: return ErrorCode::deadlock;
    case Violation::Kind::unmatched_wait: return ErrorCode::wait_without_record;
    case Violation::Kind::event_reuse: return ErrorCode::shared_event_id;
    case Violation::Kind::limit: return ErrorCode::stream_limit;
    case Violation::Kind::missing_node:
    case Violation::Kind::repeated_node: return ErrorCode::plan_mismatch;
    default: return ErrorCode::race;
  }
}

}  // namespace

Result<void> refuse_unsafe(const Graph& graph, const Schedule& schedule, const Target& target) {
  const CheckReport report = check(graph, schedule, &target, {}, false);
  if (report.ok()) return {};
  return Error{code_of(report.violations.front().kind), "this schedule is not safe to run: " + report.violations.front().message}.help(
      "millstream check shows every violation");
}

}  // namespace millstream::cli
