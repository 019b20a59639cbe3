// SPDX-License-Identifier: Apache-2.0
// One error for every operator that a graph needs and we lack.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "millstream/core/error.h"

namespace millstream {

/// Collects (type, opset, reason) with a count each; the error lists them in that order, one note a row.
class MissingOperators {
 public:
  void add(std::string_view type, int opset, std::string_view reason) {
    ++rows_[{std::string(type), opset, std::string(reason)}];
  }
  bool empty() const { return rows_.empty(); }
  /// Notes are "TYPE (opset N, K nodes): REASON".
  Error error(std::string_view graph) const;

 private:
  std::map<std::tuple<std::string, int, std::string>, std::size_t> rows_;
};

/// Why `type` cannot be used at `opset`, or "" when it can.
std::string why_missing(std::string_view type, int opset);

}  // namespace millstream
