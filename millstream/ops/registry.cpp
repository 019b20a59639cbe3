// SPDX-License-Identifier: Apache-2.0
// Joins the family tables into one, sorted by the spelling that graphs use.
#include <algorithm>
#include <string>

#include "millstream/ops/tables.h"

namespace millstream {
namespace {

struct Registry {
  std::vector<OpSchema> schemas;    // ascending by type, then domain
  std::vector<std::string> names;   // the graph's spelling of each, parallel until `index` is sorted
  std::vector<std::size_t> index;   // into both, ascending by name
};

std::string graph_spelling(const OpSchema& schema) {
  if (schema.domain.empty() || schema.domain == "millstream") return std::string(schema.type);
  return std::string(schema.domain) + "::" + std::string(schema.type);
}

const Registry& registry() {
  static const Registry built = [] {
    Registry r;
    for (const OpTable table : kOpTables) {
      const auto rows = table();
      r.schemas.insert(r.schemas.end(), rows.begin(), rows.end());
    }
    std::stable_sort(r.schemas.begin(), r.schemas.end(), [](const OpSchema& a, const OpSchema& b) {
      return a.type != b.type ? a.type < b.type : a.domain < b.domain;
    });
    for (std::size_t i = 0; i < r.schemas.size(); ++i) {
      r.names.push_back(graph_spelling(r.schemas[i]));
      r.index.push_back(i);
    }
    std::stable_sort(r.index.begin(), r.index.end(),
                     [&](std::size_t a, std::size_t b) { return r.names[a] < r.names[b]; });
    return r;
  }();
  return built;
}

}  // namespace

const OpSchema* find_op(std::string_view type) {
  const Registry& r = registry();
  const auto it = std::lower_bound(r.index.begin(), r.index.end(), type,
                                   [&](std::size_t i, std::string_view key) { return r.names[i] < key; });
  return it != r.index.end() && r.names[*it] == type ? &r.schemas[*it] : nullptr;
}

std::span<const OpSchema> all_ops() { return registry().schemas; }

}  // namespace millstream
