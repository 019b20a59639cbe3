// SPDX-License-Identifier: Apache-2.0
#include "millstream/ops/missing.h"

#include <fmt/format.h>

#include "millstream/ops/op.h"

namespace millstream {

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
  out.help("docs/operators.md lists what there is; export with other operators, or decompose these");
  return out;
}

std::string why_missing(std::string_view type, int opset) {
  const OpSchema* schema = find_op(type);
  if (schema == nullptr) return "not an operator of millstream";
  if (!schema->domain.empty()) return {};  // other domains count their own versions
  if (opset < schema->first_opset || opset > schema->last_opset) {
    return fmt::format("its meaning is known for opsets {} to {} only", schema->first_opset, schema->last_opset);
  }
  return {};
}

}  // namespace millstream
