// SPDX-License-Identifier: Apache-2.0
// The parts of the Python module millstream._core.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "millstream/compile/compile.h"
#include "millstream/core/result.h"
#include "millstream/graph/graph.h"

namespace millstream::python {

namespace nb = nanobind;

/// Thrown across the bindings: becomes millstream.Error.
struct ErrorThrown {
  Error error;
};

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw ErrorThrown{std::move(result).error()};
  return std::move(result).value();
}
void value_of(Result<void> result);

/// What the graph of a Python program is made of. Node and value ids are those of the order of adding.
class GraphUnderWork {
 public:
  GraphUnderWork(std::string name, bool dynamic) : graph_(std::move(name)) { graph_.set_dynamic(dynamic); }

  using Shape = std::vector<std::variant<std::int64_t, std::string>>;
  using Output = std::pair<std::string, Shape>;
  using AttributeValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;
  using Attributes = std::map<std::string, AttributeValue>;

  std::uint32_t add_value(const std::string& name, const std::string& dtype, const Shape& shape);
  std::uint32_t add_node(const std::string& type, const std::string& name, const std::vector<std::optional<std::uint32_t>>& inputs,
                         const std::vector<Output>& outputs, const std::vector<std::uint32_t>& after, const Attributes& attributes,
                         const std::string& engine, const std::string& source, std::optional<double> cost);
  std::uint32_t output(std::uint32_t node, std::uint32_t index) const;
  void set_outputs(const std::vector<std::uint32_t>& values);

  const std::string& name() const { return graph_.name(); }
  std::size_t node_count() const { return graph_.node_count(); }
  std::size_t value_count() const { return graph_.value_count(); }
  std::string node_name(std::uint32_t node) const;
  std::string value_name(std::uint32_t value) const;
  /// Finished and verified. Throws ErrorThrown.
  Graph finished() const;
  /// The error as Python shows it: a place names the line of the Python program that the node came from.
  Error placed(Error error) const;

 private:
  void need_node(std::uint32_t node) const;
  void need_value(std::uint32_t value) const;

  Graph graph_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> sources_;  // "FILE:LINE" by node
};

void bind_errors(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_plan(nb::module_& m);
void bind_runner(nb::module_& m);

}  // namespace millstream::python
