// SPDX-License-Identifier: Apache-2.0
// Seeded random graphs with nested bodies, as text: calls, branches and loops in any of which shapes may be unknown,
// labels and attached streams at random.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "millstream/graph/text.h"
#include "tests/random_graph.h"

namespace millstream::testing {

struct NestedOptions {
  std::size_t nodes = 3;      ///< in one body, at most
  std::size_t nested = 4;     ///< nodes with bodies, at most, in the whole tree
  std::size_t depth = 3;
  double root_dynamic = 0.7;  ///< chance that the root's shapes are unknown
  double dynamic = 0.2;       ///< the same of a body
  double label = 0, user_label = 0, attached = 0;
  double skipped = 0.1;       ///< chance that a node is of an engine without streams
  double elsewhere = 0;       ///< chance that another scheduler runs a node, and what it owns
};

class NestedBuilder {
 public:
  NestedBuilder(Random& random, const NestedOptions& options) : random_(random), options_(options), left_(options.nested) {}

  std::string build() {
    const bool dynamic = random_.chance(options_.root_dynamic);
    std::string head = fmt::format("graph nested{}\n  input x : ?[...]\n  input c : bool[]\n", dynamic ? " shapes=dynamic" : "");
    Scope root{{"x", "c"}, {}, {}};
    fill(root, 0);
    head += root.text;
    head += fmt::format("  output {}\n", root.values.back());
    return head + bodies_;
  }

 private:
  struct Scope {
    std::vector<std::string> values;  // that may be read
    std::vector<std::string> made;    // by its nodes
    std::string text;
  };

  std::string fresh(char kind) { return fmt::format("{}{}", kind, next_++); }
  const std::string& any(const std::vector<std::string>& list) { return list[random_.below(list.size())]; }

  std::string notes(const Scope& scope) {
    std::string out;
    if (!scope.made.empty() && random_.chance(0.15)) out += fmt::format(" @after({})", any(scope.made));
    if (random_.chance(options_.label)) out += fmt::format(" @label(\"l{}\")", random_.below(2));
    if (random_.chance(options_.user_label)) out += fmt::format(" @user_label(\"u{}\")", random_.below(2));
    if (random_.chance(options_.elsewhere)) out += " @thread_scope(7)";
    return out;
  }

  void fill(Scope& scope, std::size_t depth) {
    const std::size_t count = 1 + random_.below(options_.nodes);
    for (std::size_t i = 0; i < count; ++i) {
      if (left_ > 0 && depth < options_.depth && random_.chance(0.5)) {
        --left_;
        nested(scope, depth + 1);
      } else {
        plain(scope);
      }
    }
  }

  void plain(Scope& scope) {
    static constexpr std::string_view kTypes[] = {"Relu", "Relu", "HcomAllReduce", "NonZero", "StringLower", "DvppCrop"};
    const std::string name = fresh('n');
    const std::string_view type = random_.chance(options_.skipped) ? "HostCpuOp" : kTypes[random_.below(std::size(kTypes))];
    std::string inputs = any(scope.values);
    if (type == "HcomAllReduce" && random_.chance(0.5)) inputs += ", " + any(scope.values);
    std::string after = notes(scope);
    if (type != "HostCpuOp" && after.find("thread_scope") == std::string::npos && random_.chance(options_.attached)) after += random_.chance(0.5) ? " @attached(1)" : fmt::format(" @attached(1, \"k{}\")", next_);
    scope.text += fmt::format("  {} = {}({}) : ?[...]{}\n", name, type, inputs, after);
    scope.values.push_back(name);
    scope.made.push_back(name);
  }

  std::string body(const Scope& around, std::size_t inputs, std::size_t outputs, std::size_t depth) {
    const std::string name = fresh('b');
    std::string text = fmt::format("body {}{}\n", name, random_.chance(options_.dynamic) ? " shapes=dynamic" : "");
    Scope scope;
    for (std::size_t i = 0; i < inputs; ++i) {
      scope.values.push_back(fresh('i'));
      text += fmt::format("  input {} : ?[...]\n", scope.values.back());
    }
    const std::size_t first = random_.below(around.values.size());
    if (scope.values.empty() || random_.chance(0.4)) {
      scope.values.push_back(around.values[first]);
      text += fmt::format("  outer {} : ?[...]\n", around.values[first]);
    }
    fill(scope, depth);
    std::vector<std::string> results;
    for (std::size_t i = 0; i < outputs; ++i) {
      const bool passed = random_.chance(0.15);
      results.push_back(passed || scope.made.size() <= i ? any(scope.values) : scope.made[scope.made.size() - 1 - i]);
    }
    text += scope.text + fmt::format("  output {}\n", fmt::join(results, ", "));
    bodies_ += text;
    return name;
  }

  void nested(Scope& scope, std::size_t depth) {
    const std::string name = fresh('n');
    std::string line;
    const std::string first = any(scope.values), second = any(scope.values), third = any(scope.values);
    switch (random_.below(5)) {
      case 0:
        line = fmt::format("{} = PartitionedCall({}) {{f=body({})}}", name, first, body(scope, 1, 1, depth));
        break;
      case 1: {
        const std::string yes = body(scope, 1, 1, depth), no = body(scope, 1, 1, depth);
        line = fmt::format("{} = If({}, {}) {{then_branch=body({}), else_branch=body({})}}", name, first, second, yes, no);
        break;
      }
      case 2: {
        std::string branches;
        const std::size_t count = 2 + random_.below(2);
        for (std::size_t i = 0; i < count; ++i) branches += fmt::format("{}branches{}=body({})", i == 0 ? "" : ", ", i, body(scope, 0, 1, depth));
        line = fmt::format("{} = Case({}) {{{}}}", name, first, branches);
        break;
      }
      case 3: {
        const std::string test = body(scope, 1, 1, depth), turn = body(scope, 1, 1, depth);
        line = fmt::format("{} = While({}) {{cond=body({}), body=body({})}}", name, first, test, turn);
        break;
      }
      default: {
        const bool counted = random_.chance(0.7), judged = random_.chance(0.5);
        line = fmt::format("{} = Loop({}, {}, {}) {{body=body({})}}", name, counted ? first : "_", judged ? second : "_", third, body(scope, 3, 2, depth));
        break;
      }
    }
    scope.text += fmt::format("  {} : ?[...]{}\n", line, notes(scope));
    scope.values.push_back(name);
    scope.made.push_back(name);
  }

  Random& random_;
  const NestedOptions options_;
  std::size_t left_;
  std::size_t next_ = 0;
  std::string bodies_;
};

inline Graph random_nested(Random& random, const NestedOptions& options) {
  const std::string text = NestedBuilder(random, options).build();
  auto graph = parse_graph(text, "nested");
  MST_CHECK(graph.ok(), to_string(graph.error()) + "\n" + text);
  return std::move(*graph);
}

}  // namespace millstream::testing
