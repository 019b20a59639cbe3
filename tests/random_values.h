// SPDX-License-Identifier: Apache-2.0
// Seeded random programs with values: every kind of control flow, nested, as text. All tensors are f32[4]; what decides
// comes from the values, so that inputs choose the way.
#pragma once

#include <string>
#include <vector>

#include "tests/random_graph.h"

namespace millstream::testing {

class ValueProgram {
 public:
  explicit ValueProgram(Random& random) : random_(random) {}

  /// Inputs x and y; the last values are outputs.
  std::string build() {
    Scope root{{"x", "y"}, ""};
    fill(root, 3 + random_.below(4), 0);
    std::string head = "graph values\n  input x : f32[4]\n  input y : f32[4]\n" + root.text;
    head += fmt::format("  output {}\n  output {}\n", root.values.back(), root.values[root.values.size() - 2]);
    return head + bodies_;
  }

 private:
  struct Scope {
    std::vector<std::string> values;
    std::string text;
  };

  std::string fresh(char kind) { return fmt::format("{}{}", kind, next_++); }
  const std::string& any(const Scope& s) { return s.values[random_.below(s.values.size())]; }
  std::string notes() { return random_.chance(0.5) ? fmt::format(" @user_label(\"u{}\")", random_.below(3)) : ""; }

  void fill(Scope& scope, std::size_t count, std::size_t depth) {
    for (std::size_t i = 0; i < count; ++i) {
      if (depth < 3 && left_ > 0 && random_.chance(0.45)) {
        --left_;
        nested(scope, depth + 1);
      } else {
        plain(scope);
      }
    }
  }

  void plain(Scope& scope) {
    static constexpr std::string_view kOne[] = {"Neg", "Relu", "Tanh", "Sigmoid", "Abs", "Identity"};
    static constexpr std::string_view kTwo[] = {"Add", "Sub", "Max", "Min"};
    const std::string name = fresh('n');
    const std::string a = any(scope), b = any(scope);
    if (random_.chance(0.5)) {
      scope.text += fmt::format("  {} = {}({}) : f32[4]{}\n", name, kOne[random_.below(std::size(kOne))], a, notes());
    } else {
      scope.text += fmt::format("  {} = {}({}, {}) : f32[4]{}\n", name, kTwo[random_.below(std::size(kTwo))], a, b, notes());
    }
    scope.values.push_back(name);
  }

  // A bool from the values.
  std::string decision(Scope& scope) {
    const std::string sum = fresh('s'), limit = fresh('k'), name = fresh('p');
    scope.text += fmt::format("  {} = ReduceMax({}) {{keepdims=0}} : f32[]\n", sum, any(scope));
    scope.text += fmt::format("  const {} : f32[] = [{}]\n", limit, static_cast<int>(random_.below(3)) - 1);
    scope.text += fmt::format("  {} = Greater({}, {}) : bool[]\n", name, sum, limit);
    return name;
  }

  std::string whole(Scope& scope, std::int64_t value) {
    const std::string name = fresh('k');
    scope.text += fmt::format("  const {} : i64[] = [{}]\n", name, value);
    return name;
  }

  // A body with these lines in front; what it may read from outside is declared as it is.
  std::string body(const Scope& outer, std::string lines, std::vector<std::string> values, std::size_t depth, bool captures,
                   const std::vector<std::string>& first_outputs, std::size_t outputs) {
    const std::string name = fresh('b');
    std::string outside;
    Scope scope{std::move(values), ""};
    if (captures) {
      for (const std::string& v : outer.values) {
        if (!random_.chance(0.3) && !(scope.values.empty() && &v == &outer.values.back())) continue;
        outside += fmt::format("  outer {} : f32[4]\n", v);
        scope.values.push_back(v);
      }
    }
    fill(scope, random_.below(4), depth);
    std::string text = fmt::format("body {}\n{}{}{}", name, lines, outside, scope.text);
    for (const std::string& o : first_outputs) text += fmt::format("  output {}\n", o);
    for (std::size_t i = 0; i < outputs; ++i) text += fmt::format("  output {}\n", any(scope));
    bodies_ += text;
    return name;
  }

  void nested(Scope& scope, std::size_t depth) {
    const std::string out = fresh('r');
    switch (random_.below(7)) {
      case 0: {
        const std::string p = decision(scope);
        const std::string a = body(scope, "", {}, depth, true, {}, 1), b = body(scope, "", {}, depth, true, {}, 1);
        scope.text += fmt::format("  {} = If({}) {{then_branch=body({}), else_branch=body({})}} : f32[4]\n", out, p, a, b);
        break;
      }
      case 1: {
        const std::string p = decision(scope), index = fresh('i');
        scope.text += fmt::format("  {} = Cast({}) {{to=7}} : i64[]\n", index, p);
        std::string list;
        const std::size_t count = 1 + random_.below(3);
        for (std::size_t i = 0; i < count; ++i) {
          const std::string in = fresh('v');
          list += fmt::format("{}branches{}=body({})", i == 0 ? "" : ", ", i, body(scope, fmt::format("  input {} : f32[4]\n", in), {in}, depth, false, {}, 1));
        }
        scope.text += fmt::format("  {} = Case({}, {}) {{{}}} : f32[4]\n", out, index, any(scope), list);
        break;
      }
      case 2: {
        const std::string n = whole(scope, 0), i = fresh('i'), v = fresh('v'), limit = fresh('k'), p = fresh('p'), ci = fresh('i'), cv = fresh('v');
        const std::string cond = fresh('b');
        bodies_ += fmt::format("body {}\n  input {} : i64[]\n  input {} : f32[4]\n  const {} : i64[] = [{}]\n  {} = Less({}, {}) : bool[]\n  output {}\n", cond, ci, cv,
                               limit, random_.below(4), p, ci, limit, p);
        const std::string one = fresh('k'), next = fresh('i');
        const std::string lines = fmt::format("  input {} : i64[]\n  input {} : f32[4]\n  const {} : i64[] = [1]\n  {} = Add({}, {}) : i64[]\n", i, v, one, next, i, one);
        const std::string turn = body(scope, lines, {v}, depth, false, {next}, 1);
        const std::string last = fresh('i');
        scope.text += fmt::format("  {}, {} = While({}, {}) {{cond=body({}), body=body({})}} : i64[], f32[4]\n", last, out, n, any(scope), cond, turn);
        break;
      }
      case 3: {
        const bool down = random_.chance(0.3);
        const std::string from = whole(scope, down ? 3 : 0), to = whole(scope, down ? 0 : static_cast<std::int64_t>(random_.below(4))), step = whole(scope, down ? -1 : 1);
        const std::string i = fresh('i'), v = fresh('v');
        const std::string turn = body(scope, fmt::format("  input {} : i64[]\n  input {} : f32[4]\n", i, v), {v}, depth, false, {}, 1);
        scope.text += fmt::format("  {} = For({}, {}, {}, {}) {{body=body({})}} : f32[4]\n", out, from, to, step, any(scope), turn);
        break;
      }
      case 4: loop(scope, depth, out); break;
      case 5: scan(scope, depth, out); break;
      default: {
        const std::string in = fresh('v');
        const std::string f = body(scope, fmt::format("  input {} : f32[4]\n", in), {in}, depth, false, {}, 1);
        scope.text += fmt::format("  {} = PartitionedCall({}) {{f=body({})}} : f32[4]\n", out, any(scope), f);
      }
    }
    scope.values.push_back(out);
  }

  // Two carried values that may change places, and one stacked output, whose sum is read.
  void loop(Scope& scope, std::size_t depth, const std::string& out) {
    const bool limited = random_.chance(0.8);
    const std::string trips = limited ? whole(scope, static_cast<std::int64_t>(random_.below(4))) : "_";
    const std::string go = !limited || random_.chance(0.4) ? decision(scope) : "_";
    const std::string i = fresh('i'), c = fresh('c'), v = fresh('v'), w = fresh('v'), limit = fresh('k'), on = fresh('p');
    const std::string lines = fmt::format("  input {} : i64[]\n  input {} : bool[]\n  input {} : f32[4]\n  input {} : f32[4]\n  const {} : i64[] = [{}]\n  {} = Less({}, {}) : bool[]\n",
                                          i, c, v, w, limit, random_.below(3), on, i, limit);
    const std::string turn = body(scope, lines, {v, w}, depth, true, {random_.chance(0.3) && limited ? c : on}, 3);
    const std::string other = fresh('r'), stacked = fresh('r'), axes = fresh('k');
    scope.text += fmt::format("  {}, {}, {} = Loop({}, {}, {}, {}) {{body=body({})}} : f32[4], f32[4], f32[?,4]\n", out, other, stacked, trips, go, any(scope), any(scope), turn);
    scope.values.push_back(other);
    add_up(scope, stacked);
  }

  void scan(Scope& scope, std::size_t depth, const std::string& out) {
    const std::string rows = fresh('r'), table = fresh('k'), v = fresh('v'), row = fresh('v');
    const bool backwards = random_.chance(0.4), columns = random_.chance(0.4);
    scope.text += fmt::format("  const {} : f32[3,4] = [1, 2, -3, 4, -5, 6, 7, 8, 9, -10, 11, 12]\n", table);
    std::string from = table;
    if (columns) {
      from = fresh('t');
      scope.text += fmt::format("  {} = Transpose({}) {{perm=[1, 0]}} : f32[4,3]\n", from, table);
    }
    const std::string turn = body(scope, fmt::format("  input {} : f32[4]\n  input {} : f32[4]\n", v, row), {v, row}, depth, true, {}, 2);
    scope.text += fmt::format("  {}, {} = Scan({}, {}) {{body=body({}), num_scan_inputs=1{}{}}} : f32[4], f32[3,4]\n", out, rows, any(scope), from, turn,
                              backwards ? ", scan_input_directions=[1]" : "", columns ? ", scan_input_axes=[1]" : "");
    add_up(scope, rows);
  }

  void add_up(Scope& scope, const std::string& rows) {
    const std::string axes = fresh('k'), sum = fresh('n');
    scope.text += fmt::format("  const {} : i64[1] = [0]\n  {} = ReduceSum({}, {}) {{keepdims=0}} : f32[4]{}\n", axes, sum, rows, axes, notes());
    scope.values.push_back(sum);
  }

  Random& random_;
  std::size_t left_ = 5;
  std::size_t next_ = 0;
  std::string bodies_;
};

}  // namespace millstream::testing
