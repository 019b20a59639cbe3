// SPDX-License-Identifier: Apache-2.0
// Operator attributes: a small sorted list of name and value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "millstream/graph/tensor.h"

namespace millstream {

using Attr = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                          std::vector<float>, std::vector<std::string>, Tensor>;

/// Sorted by name, names unique. Nested graphs are not attributes: see Graph::bodies.
class Attrs {
 public:
  void set(std::string name, Attr value);
  const Attr* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool empty() const { return items_.empty(); }
  const std::vector<std::pair<std::string, Attr>>& items() const { return items_; }

  // Typed reads: the value, or the default when absent or of another type (import checks types).
  std::int64_t get_int(std::string_view name, std::int64_t otherwise) const;
  float get_float(std::string_view name, float otherwise) const;
  std::string get_string(std::string_view name, std::string_view otherwise) const;
  /// Empty when absent.
  std::vector<std::int64_t> get_ints(std::string_view name) const;
  std::vector<float> get_floats(std::string_view name) const;
  std::vector<std::string> get_strings(std::string_view name) const;
  const Tensor* get_tensor(std::string_view name) const;

  friend bool operator==(const Attrs&, const Attrs&) = default;

 private:
  std::vector<std::pair<std::string, Attr>> items_;
};

}  // namespace millstream
