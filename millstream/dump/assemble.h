// SPDX-License-Identifier: Apache-2.0
// Rows of a dump become a graph and, where the dump has them, the lanes of its streams.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "millstream/dump/dump.h"
#include "millstream/dump/node_row.h"
#include "millstream/dump/scanner.h"

namespace millstream::dump {

/// By node of a graph: whether it emits a task.
using EmitsTask = std::vector<bool> (*)(const Graph&);

/// Takes the rows of a text in the order they stand. A section is one graph of the dump; the first is the root.
/// Nodes may be named before they are listed; links are followed at the end.
class Assembler {
 public:
  Assembler(Scanner& scanner, EmitsTask emits) : scanner_(scanner), emits_(emits) {}

  std::uint32_t open_section(std::size_t place);
  void name_section(std::uint32_t section, std::string_view name) { sections_[section].name = std::string(name); }
  bool section_has_name(std::uint32_t section) const { return !sections_[section].name.empty(); }
  std::size_t section_count() const { return sections_.size(); }
  void set_opset(std::int64_t opset) { opset_ = opset; }
  /// To be told of each text in a list of texts: each costs more memory than the two quotes it may stand for.
  void count_text();
  /// `index` is -1 where the dump does not say which output of the node.
  void add_output(std::uint32_t section, std::string_view node, std::int64_t index);
  /// Errors go to the scanner, with the place of the row.
  void add(std::uint32_t section, NodeRow& row);
  Result<Dump> finish(DumpKind kind);

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr std::int32_t kAbsent = -2;
  static constexpr std::int64_t kNoNumber = INT64_MIN;

  enum class Kind : std::uint8_t { node, value, sync, relay };
  struct Row {
    StringId name, type;
    std::uint32_t section = 0;
    std::uint32_t first_link = 0;
    std::uint32_t first_desc = 0;
    std::uint32_t descs = 0;
    std::uint32_t outputs = 0;
    std::uint32_t extra = kNone;
    Kind kind = Kind::node;
    std::int64_t id = kNoNumber;
    std::int64_t stream = kNoNumber;
    std::size_t place = 0;
    std::uint32_t line = 1, column = 1;  // of place
  };
  struct Link {
    StringId source;         // once followed: a row
    std::int32_t index = 0;  // output, -1: control, kAbsent: left out
  };
  struct Extra {
    std::vector<std::pair<std::string, Attr>> attrs;
    std::vector<std::string> subgraphs;
    std::vector<std::int64_t> send, recv;
  };
  struct Section {
    std::string name;
    std::size_t place = 0;
    std::vector<std::uint32_t> rows;
    std::vector<std::uint32_t> inside;  // sections that rows of this one own, ascending
    std::uint32_t owner = kNone;        // row
    std::string attribute;        // of a body
    std::string body_name;
    bool body = false;
    bool scope = false;           // the dump says so
    bool dynamic = false;
    bool reached = false;
    std::vector<std::pair<StringId, std::int64_t>> outputs;
    std::unordered_map<std::uint32_t, std::uint32_t> by_name;  // StringId, row; looked up only. The root's are in root_names_
  };

  std::uint32_t desc_id(const DescRow& row);
  const Attr* attr(const Row& row, std::string_view name) const;
  void take_attr(Row& row, std::string_view name);
  std::vector<std::int64_t> ints(const Row& row, std::string_view name) const;

  // The steps of finish; each answers false once the scanner holds an error.
  bool find_owners();
  bool reach(std::uint32_t section, std::size_t depth);
  bool index_names();
  std::uint32_t find(std::uint32_t section, StringId name) const;
  void find_relays();
  bool follow_links();
  void expand(std::uint32_t section, std::vector<std::uint32_t>& out) const;

  using Results = std::vector<std::pair<std::int64_t, ValueId>>;  // place among the graph's outputs, value

  // The graph of a section, with the scopes in it; bodies are built on the way (build.cpp).
  Result<Graph> build(std::uint32_t section, const std::vector<std::uint32_t>& rows);
  void add_values(std::uint32_t section, const std::vector<std::uint32_t>& rows, Graph& graph, std::vector<bool>& taken);
  Result<void> add_nodes(std::uint32_t section, const std::vector<std::uint32_t>& rows, Graph& graph, std::vector<bool>& taken, Results& results);
  void add_scopes(std::uint32_t section, Graph& graph);
  void add_attrs(const Row& row, NodeId n, Graph& graph);
  void add_loop_backs(const std::vector<std::uint32_t>& rows, Graph& graph) const;
  void set_outputs(std::uint32_t section, Graph& graph, Results results) const;
  void order_by_ids(const std::vector<std::uint32_t>& rows, Graph& graph) const;
  TensorDesc desc_of(const Row& row, std::uint32_t output) const;
  std::span<const Link> links(std::uint32_t r) const;
  std::span<const std::pair<std::uint32_t, std::uint32_t>> owned_by(std::uint32_t r) const;

  // lanes.cpp
  Result<std::optional<Schedule>> lanes(const std::vector<std::uint32_t>& rows, const Graph& graph);
  std::int64_t event_number(const Row& row) const;
  Error error_at(std::size_t place, ErrorCode code, std::string message) const;
  std::string_view name(const Row& row) const { return strings_[row.name]; }
  std::string_view type(const Row& row) const { return strings_[row.type]; }

  Scanner& scanner_;
  EmitsTask emits_;
  StringPool strings_;
  std::vector<Section> sections_;
  std::vector<Row> rows_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> desc_of_;  // by output of a row: index into descs_
  std::vector<TensorDesc> descs_;
  std::unordered_map<std::string, std::uint32_t> desc_index_;  // looked up only
  std::vector<Extra> extras_;
  std::vector<std::uint32_t> root_names_;  // row by StringId
  std::vector<std::uint32_t> relay_of_;    // by row: the switch of a relay; empty without relays
  std::vector<std::pair<std::uint32_t, std::uint32_t>> owned_;  // row, section; ascending
  std::vector<std::uint32_t> scope_of_;    // by section: its scope in the graph it is part of, kNone
  std::vector<std::uint32_t> node_of_;     // by row: its node in the graph of its section, kNone
  std::vector<std::uint32_t> first_value_;  // by row: its first value there, kNone
  std::size_t texts_ = 0;                  // in lists
  std::size_t counted_ = 0;                // lines are counted up to here
  std::uint32_t line_ = 1;
  std::size_t line_begin_ = 0;
  std::int64_t opset_ = 23;
};

}  // namespace millstream::dump
