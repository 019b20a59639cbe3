// SPDX-License-Identifier: Apache-2.0
// RNN, GRU, LSTM.
#include <fmt/format.h>

#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

// X [steps, batch, features] (layout 1: batch first), W [D, Gates * H, features], R [D, Gates * H,
// H], B [D, 2 * Gates * H]. Outputs Y [steps, D, batch, H], Y_h [D, batch, H], LSTM also Y_c
// (layout 1: batch first in each). D is 2 when bidirectional.
template <int Gates>
Descs recurrent(const ShapeContext& c) {
  const Operands in(c);
  MST_TRY_VOID(in.expect_types(0, "X", types::kFloat));
  MST_TRY(const DType dtype, in.common_dtype({0, 1, 2, 3, 5, 6, 7}));
  MST_TRY_VOID(in.expect_types(4, "sequence_lens", {DType::i32}));
  MST_TRY_VOID(in.expect_rank(0, "X", 3, 3));
  MST_TRY_VOID(in.expect_rank(1, "W", 3, 3));
  MST_TRY_VOID(in.expect_rank(2, "R", 3, 3));
  MST_TRY_VOID(in.expect_rank(3, "B", 2, 2));
  MST_TRY_VOID(in.expect_rank(4, "sequence_lens", 1, 1));
  MST_TRY_VOID(in.expect_rank(5, "initial_h", 3, 3));
  MST_TRY_VOID(in.expect_rank(6, "initial_c", 3, 3));
  MST_TRY_VOID(in.expect_rank(7, "P", 2, 2));
  const std::string direction = in.attrs().get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return in.error(
        fmt::format("direction is \"{}\", expected forward, reverse or bidirectional", direction));
  }
  const Dim directions = Dim::of(direction == "bidirectional" ? 2 : 1);
  const bool batch_first = c.opset >= 14 && in.attrs().get_int("layout", 0) != 0;
  Dim hidden;
  if (in.attrs().has("hidden_size")) {
    const std::int64_t n = in.attrs().get_int("hidden_size", 0);
    if (n < 1 || n > (std::int64_t{1} << 40))
      return in.error(fmt::format("hidden_size is {}, expected at least 1", n));
    hidden = Dim::of(n);
  }
  const auto expect = [&](std::size_t i, std::size_t axis, const Dim& want,
                          std::string_view what) -> Result<Dim> {
    const Dims* d = in.dims(i);
    return d == nullptr ? Result<Dim>(want) : in.same((*d)[axis], want, what);
  };
  MST_TRY(hidden, expect(2, 2, hidden, "last axis of R and hidden_size"));
  Dim steps, batch, features;
  if (const Dims* x = in.dims(0)) {
    steps = (*x)[batch_first ? 1 : 0];
    batch = (*x)[batch_first ? 0 : 1];
    features = (*x)[2];
  }
  const Dim rows = times(Dim::of(Gates), hidden);
  MST_TRY_VOID(expect(1, 2, features, "last axis of W and features of X"));
  MST_TRY_VOID(expect(1, 1, rows, "rows of W and gates times hidden_size"));
  MST_TRY_VOID(expect(2, 1, rows, "rows of R and gates times hidden_size"));
  MST_TRY_VOID(
      expect(3, 1, times(Dim::of(2), rows), "length of B and twice the gates times hidden_size"));
  for (std::size_t i = 1; i < 4; ++i) {
    MST_TRY_VOID(expect(i, 0, directions, fmt::format("first axis of input {} and directions", i)));
  }
  MST_TRY(batch, expect(4, 0, batch, "length of sequence_lens and batch"));
  const Dims state =
      batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  for (std::size_t i = 5; i < 7; ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      MST_TRY_VOID(expect(i, axis, state[axis],
                          fmt::format("axis {} of the initial state (input {})", axis, i)));
    }
  }
  MST_TRY_VOID(expect(7, 0, directions, "first axis of P and directions"));
  MST_TRY_VOID(expect(7, 1, times(Dim::of(3), hidden), "length of P and three times hidden_size"));
  const Dims all =
      batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden};
  const std::size_t most = Gates == 4 ? 3 : 2;
  if (c.output_count > most)
    return in.error(fmt::format("has {} outputs, expected at most {}", c.output_count, most));
  std::vector<TensorDesc> out;
  for (std::size_t i = 0; i < c.output_count; ++i)
    out.push_back(described(dtype, i == 0 ? all : state));
  return out;
}

// Every step multiplies each row of the batch with all weights: two flops a multiply-add.
OpCost recurrent_cost(const Attrs&, InputDescs inputs, OutputDescs outputs) {
  double rows = 0;
  if (inputs[0] != nullptr && inputs[0]->is_static()) {
    const auto x = inputs[0]->dims();
    if (x.size() == 3) rows = static_cast<double>(x[0]) * static_cast<double>(x[1]);
  }
  return {2 * rows * (elements_of(inputs[1]) + elements_of(inputs[2])), traffic(inputs, outputs)};
}

constexpr OpSchema kTable[] = {
    {"GRU", "", 7, 23, 3, 6, recurrent<3>, recurrent_cost},
    {"LSTM", "", 7, 23, 3, 8, recurrent<4>, recurrent_cost},
    {"RNN", "", 7, 23, 3, 6, recurrent<1>, recurrent_cost},
};

}  // namespace

std::span<const OpSchema> table_recurrent() { return kTable; }

}  // namespace millstream
