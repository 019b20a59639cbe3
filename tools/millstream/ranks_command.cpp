// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/ranks_command.h"

#include <fmt/format.h>

#include "millstream/schedule/ranks.h"

namespace millstream::cli {
namespace {

std::string_view kind_name(RankConflict::Kind kind) {
  switch (kind) {
    case RankConflict::Kind::order: return "order";
    case RankConflict::Kind::unordered: return "unordered";
    case RankConflict::Kind::missing: return "missing";
  }
  return "?";
}

}  // namespace

Result<int> run_ranks(const ModelOptions& first, const std::vector<std::string>& others) {
  std::vector<std::string> paths = {first.path};
  paths.insert(paths.end(), others.begin(), others.end());
  std::vector<Loaded> loaded;
  for (const std::string& path : paths) {
    ModelOptions one = first;
    one.path = path;
    // A plan records its own model; --graph is of the first, and of lanes, which record none.
    if (&path != &paths.front() && path.size() > 5 && path.substr(path.size() - 5) == ".plan") one.graph.clear();
    MST_TRY(Loaded rank, load(one));
    if (!rank.schedule) {
      return Error{ErrorCode::usage, fmt::format("\"{}\" holds no schedule to compare", path)}.help(
          "each rank is a .plan, or a .mst with a graph and a schedule section");
    }
    loaded.push_back(std::move(rank));
  }
  std::vector<RankPlan> plans;
  for (std::size_t i = 0; i < loaded.size(); ++i) plans.push_back({fmt::format("rank {} ({})", i, paths[i]), &loaded[i].graph, &*loaded[i].schedule});
  MST_TRY(const std::vector<RankConflict> found, check_ranks(plans));
  if (first.json) {
    Json json;
    json["ok"] = found.empty();
    json["ranks"] = paths;
    json["violations"] = Json::array();
    for (const RankConflict& c : found) {
      json["violations"].push_back({{"kind", kind_name(c.kind)}, {"first", c.first}, {"second", c.second.empty() ? Json(nullptr) : Json(c.second)},
                                    {"ranks", c.ranks}, {"message", c.message}});
    }
    print_json(json);
    return found.empty() ? 0 : 1;
  }
  for (const RankConflict& c : found) fmt::print("{}: {}\n", kind_name(c.kind), c.message);
  if (found.empty()) {
    fmt::print("ok: {} order their common collectives alike (each plan alone: millstream check PLAN)\n", counted(plans.size(), "rank"));
  } else {
    fmt::print("{}\n", counted(found.size(), "violation"));
  }
  return found.empty() ? 0 : 1;
}

}  // namespace millstream::cli
