// SPDX-License-Identifier: Apache-2.0
// Runs a folder of data cases: cases_main [-v] DIR_OR_FILE... (tests/cases/SCHEMA.md). A case runs under its preset,
// and must meet what it expects; then under the other preset, where a difference is printed with the rule that
// makes it. The last line counts; the exit status is 0 when nothing failed.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "tests/cases/case.h"

namespace millstream::cases {
namespace {

Outcome run(const Case& c, Preset preset) {
  const auto options = options_of(c, preset);
  if (!options.ok()) {
    Outcome outcome;
    outcome.error = options.error();
    return outcome;
  }
  if (c.stage == "logical" || c.stage == "dynamic" || c.stage == "attached") return run_logical(c, *options);
  if (c.stage == "sync") return run_sync(c, *options);
  if (c.stage == "split" || c.stage == "activate") return run_split(c, *options);
  if (c.stage == "e2e") return run_whole(c, *options);
  if (c.stage == "runtime") return run_steps(c);
  if (c.stage == "prepass") return run_prepass(c, *options);
  Outcome outcome;
  outcome.error = Error{ErrorCode::usage, fmt::format("there is no stage \"{}\"", c.stage)};
  return outcome;
}

// `expect` and `expect_derived` must hold, and one alternative of `any_of`.
std::vector<Mismatch> judge(const Case& c, const Outcome& outcome) {
  const Json none = Json::object();
  // An empty block asserts success only, unless the derived one names an error.
  const Json& derived = c.json.contains("expect_derived") ? c.json.at("expect_derived") : none;
  const Json& expect = c.json.at("expect");
  std::vector<Mismatch> out;
  const auto alternatives = c.json.contains("any_of") ? c.json.at("any_of") : Json::array();
  const bool error_allowed = std::any_of(alternatives.begin(), alternatives.end(), [](const Json& a) { return a.contains("error"); });
  const auto add = [&](const Json& block) {
    for (Mismatch& m : compare(c, block, outcome)) out.push_back(std::move(m));
  };
  if (!(expect.empty() && derived.contains("error")) && !(error_allowed && outcome.error)) add(expect);
  if (!derived.empty()) add(derived);
  if (!alternatives.empty()) {
    std::vector<Mismatch> nearest;
    bool met = false;
    for (const Json& a : alternatives) {
      auto missed = compare(c, a, outcome);
      met = met || missed.empty();
      if (nearest.empty() || missed.size() < nearest.size()) nearest = std::move(missed);
    }
    if (!met) {
      for (Mismatch& m : nearest) out.push_back({"any_of: " + m.key, m.expected, m.got});
    }
  }
  return out;
}

// Which rules of ours and of Graph Engine of 2023 differ, by stage (docs/rules.md).
std::string_view difference_of(const Case& c) {
  if (c.stage == "logical" || c.stage == "dynamic") return "rules mde-group and ineffective are newer; parallel groups are shared over the graph";
  if (c.stage == "attached") return "attached streams";
  if (c.stage == "sync") return "sync exact keeps the least that keeps every order, compat runs three local rules; multiplexing has no threshold";
  if (c.stage == "split") return "split_units: tasks are counted, compat counts nodes";
  if (c.stage == "activate") return "loop pairs are reduced with the others; a piece joins the list that starts its stream, whatever scope it begins in";
  return "the rules of the chain and the sync mode";
}

int run_all(const std::vector<std::string>& files, bool verbose) {
  std::size_t passed = 0, failed = 0, skipped = 0;
  for (const std::string& file : files) {
    const Result<Case> c = load_case(file);
    if (!c.ok()) {
      ++failed;
      fmt::print("FAILED {}\n", to_string(c.error()));
      continue;
    }
    if (c->optional) {
      ++skipped;
      if (verbose) fmt::print("skipped {}: rewriting of dataflow control flow\n", c->name);
      continue;
    }
    const std::vector<Mismatch> missed = judge(*c, run(*c, c->preset));
    if (missed.empty()) {
      ++passed;
      if (verbose) fmt::print("passed {}\n", c->name);
    } else {
      ++failed;
      fmt::print("FAILED {} ({}, preset {})\n", c->name, c->stage, c->preset == Preset::ours ? "default" : "ge2023");
      for (const Mismatch& m : missed) fmt::print("  {}: expected {}\n  {}  got {}\n", m.key, m.expected, std::string(m.key.size(), ' '), m.got);
    }
    const Preset other = c->preset == Preset::ours ? Preset::ge2023 : Preset::ours;
    for (const Mismatch& m : judge(*c, run(*c, other))) {
      fmt::print("differs {} under {}: {}: expected {}, got {}; {}\n", c->name, other == Preset::ours ? "default" : "ge2023", m.key, m.expected, m.got, difference_of(*c));
    }
  }
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace millstream::cases

int main(int argc, char** argv) {
  std::vector<std::string> files;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "-v") {
      verbose = true;
    } else if (std::filesystem::is_directory(arg)) {
      for (const auto& entry : std::filesystem::directory_iterator(arg)) {
        if (entry.path().extension() == ".json") files.push_back(entry.path().string());
      }
    } else {
      files.push_back(arg);
    }
  }
  if (files.empty()) {
    fmt::print(stderr, "usage: cases_main [-v] DIR_OR_FILE...\n");
    return 2;
  }
  std::sort(files.begin(), files.end());
  return millstream::cases::run_all(files, verbose);
}
