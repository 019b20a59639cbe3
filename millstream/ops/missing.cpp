// SPDX-License-Identifier: Apache-2.0
#include "millstream/ops/missing.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "millstream/ops/op.h"

namespace millstream {
namespace {

// Levenshtein distance without regard to case.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// The operator whose name is nearest, if no more than a third of four or more letters differ.
std::string_view nearest(std::string_view type) {
  if (type.size() < 4 || type.size() > 64) return {};
  std::string_view best;
  std::size_t least = type.size() / 3 + 1;
  for (const OpSchema& schema : all_ops()) {
    const std::size_t d = distance(type, schema.type);
    if (d < least) {
      least = d;
      best = schema.type;
    }
  }
  return best;
}

}  // namespace

Error MissingOperators::error(std::string_view graph) const {
  std::size_t nodes = 0;
  for (const auto& [row, count] : rows_) nodes += count;
  Error out{ErrorCode::unsupported_operator,
            fmt::format("model \"{}\" needs {} operator{} that millstream lacks ({} node{})", graph, rows_.size(),
                        rows_.size() == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s")};
  for (const auto& [row, count] : rows_) {
    const auto& [type, opset, reason] = row;
    out.note(fmt::format("{} (opset {}, {} node{}): {}", type, opset, count, count == 1 ? "" : "s", reason));
  }
  out.where = first_;
  out.help("docs/operators.md lists what there is; export with other operators, or decompose these");
  return out;
}

std::string why_missing(std::string_view type, int opset) {
  const OpSchema* schema = find_op(type);
  if (schema == nullptr) {
    const std::string_view near = nearest(type);
    return near.empty() ? "not an operator of millstream" : fmt::format("not an operator of millstream; did you mean {}?", near);
  }
  if (!schema->domain.empty()) return {};  // other domains count their own versions
  if (opset < schema->first_opset || opset > schema->last_opset) {
    return fmt::format("its meaning is known for opsets {} to {} only", schema->first_opset, schema->last_opset);
  }
  return {};
}

}  // namespace millstream
