// SPDX-License-Identifier: Apache-2.0
// The ecosystem's engine table in JSON.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "millstream/target/target.h"

namespace millstream {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = 1 << 20;

Error bad(const std::string& file, std::string message) {
  return Error{ErrorCode::bad_target, fmt::format("{}: {}", file, message)};
}

struct Row {
  std::string id;
  std::string scheduler;
  bool independent = false, skip = false, attach = false;
};

Result<bool> flag(const Json& engine, const char* key, const std::string& id, const std::string& file) {
  const auto at = engine.find(key);
  if (at == engine.end()) return false;
  if (!at->is_boolean()) return bad(file, fmt::format("{} of engine \"{}\" must be true or false", key, id));
  return at->get<bool>();
}

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

Result<std::vector<Row>> rows_of(const Json& root, const std::string& file) {
  const auto units = root.is_object() ? root.find("schedule_units") : root.end();
  if (!root.is_object() || units == root.end()) return bad(file, "schedule_units is missing");
  if (!units->is_array()) return bad(file, "schedule_units must be an array");
  std::vector<Row> out;
  std::set<std::string> schedulers;
  for (const Json& unit : *units) {
    const std::string id = unit.is_object() ? text_of(unit, "id") : std::string();
    if (id.empty()) return bad(file, fmt::format("schedule unit {} has no id", schedulers.size()));
    if (!schedulers.insert(id).second) return bad(file, fmt::format("scheduler \"{}\" is listed twice", id));
    const auto engines = unit.find("cal_engines");
    if (engines == unit.end()) return bad(file, fmt::format("scheduler \"{}\" has no cal_engines", id));
    if (!engines->is_array()) return bad(file, fmt::format("cal_engines of scheduler \"{}\" must be an array", id));
    std::set<std::string> seen;
    for (const Json& engine : *engines) {
      Row row;
      row.scheduler = id;
      row.id = engine.is_object() ? text_of(engine, "id") : std::string();
      if (row.id.empty()) return bad(file, fmt::format("an engine of scheduler \"{}\" has no id", id));
      if (!seen.insert(row.id).second) return bad(file, fmt::format("engine \"{}\" is listed twice in scheduler \"{}\"", row.id, id));
      MST_TRY(row.independent, flag(engine, "independent", row.id, file));
      MST_TRY(row.skip, flag(engine, "skip_assign_stream", row.id, file));
      MST_TRY(row.attach, flag(engine, "attach", row.id, file));
      out.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace

Result<Target> import_engines_json(Target target, std::string_view text, const std::string& file, bool require_all) {
  if (text.size() > kMaxBytes) return bad(file, fmt::format("{} bytes are too many for an engine table, at most {}", text.size(), kMaxBytes));
  const Json root = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return bad(file, "this is not JSON");
  MST_TRY(const std::vector<Row> rows, rows_of(root, file));
  for (const Row& row : rows) {
    const auto count = std::count_if(rows.begin(), rows.end(), [&](const Row& other) { return other.id == row.id; });
    if (count > 1) return bad(file, fmt::format("engine \"{}\" is in {} schedulers, allowed is one", row.id, count));
  }
  const std::size_t own = target.engines.size();
  for (const EngineId e : ids<EngineId>(own)) {
    const bool found = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.id == target.engines[e].name; });
    if (!found && require_all) {
      return bad(file, fmt::format("engine \"{}\" of target {} is in no scheduler", target.engines[e].name, target.name))
          .help("list it in the cal_engines of one schedule unit");
    }
  }
  for (const Row& row : rows) {
    Engine* engine = nullptr;
    for (Engine& e : target.engines) {
      if (e.name == row.id) engine = &e;
    }
    if (engine == nullptr) {
      Engine fresh;
      fresh.name = row.id;
      engine = &target.engines[target.engines.push_back(std::move(fresh))];
    }
    engine->scheduler = row.scheduler;
    engine->independent = row.independent;
    engine->skip = row.skip;
    engine->attach = row.attach;
  }
  return target;
}

}  // namespace millstream
