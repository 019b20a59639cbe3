// SPDX-License-Identifier: Apache-2.0
// One error for every operator that a graph needs and we lack.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "millstream/core/error.h"

namespace millstream {

/// Collects (type, opset, reason) with a count each; the error lists them in that order, one note a row.
class MissingOperators {
 public:
  /// `where`: the node's place in a text; the error shows the first one given.
  void add(std::string_view type, int opset, std::string_view reason, std::optional<Where> where = std::nullopt) {
    ++rows_[{std::string(type), opset, std::string(reason)}];
    if (!first_) first_ = std::move(where);
  }
  bool empty() const { return rows_.empty(); }
  /// Notes are "TYPE (opset N, K nodes): REASON".
  Error error(std::string_view graph) const;

 private:
  std::map<std::tuple<std::string, int, std::string>, std::size_t> rows_;
  std::optional<Where> first_;
};

/// Why `type` cannot be used at `opset`, or "" when it can.
std::string why_missing(std::string_view type, int opset);

}  // namespace millstream
