// SPDX-License-Identifier: Apache-2.0
// Shapes of what moves, cuts, indexes, reduces, resizes and makes tensors, in every operator set's
// form.
#include <gtest/gtest.h>

#include "tests/ops_row.h"

namespace millstream::testing {
namespace {

void check(const std::vector<OpRow>& rows) {
  for (const OpRow& row : rows) {
    EXPECT_EQ(shapes_text(row.call), row.want) << row.call.call << " at opset " << row.call.opset;
  }
}

const std::string kX = "x : f32[2,3,4]";

TEST(OpsMovement, Reshapes) {
  const auto to = [](std::string x, std::string shape, std::string want, std::string attrs = "") {
    return OpRow{{14, {"x : " + x, "s : " + shape}, "Reshape(x, s)" + attrs}, std::move(want)};
  };
  check({
      to("f32[2,3,4]", "i64[2] = [6, 4]", "f32[6,4]"),
      to("f32[2,3,4]", "i64[2] = [0, -1]", "f32[2,12]"),
      to("f32[N,3,4]", "i64[2] = [0, -1]", "f32[N,12]"),
      to("f32[N,3,4]", "i64[2] = [-1, 12]", "f32[N,12]"),
      to("f32[N,3,4]", "i64[2] = [-1, 6]", "f32[?,6]"),
      to("f32[N,3,4]", "i64[3]", "f32[?,?,?]"),
      to("f32[2,3,4]", "i64[?]", "f32[...]"),
      to("f32[...]", "i64[2] = [5, -1]", "f32[5,?]"),
      to("f32[0,3,4]", "i64[3] = [3, 4, 0]", "f32[3,4,0]", " {allowzero=1}"),
      to("f32[0,3]", "i64[2] = [0, -1]", "f32[0,3]"),
      to("f32[0]", "i64[3] = [0, 3, 3]", "f32[0,3,3]"),
      to("f32[N]", "i64[3] = [0, 3, 3]", "f32[N,3,3]"),
      to("f32[2]", "i64[3] = [0, 3, 3]", "[E39] Reshape \"n\": [2] does not reshape to [0,3,3]"),
      to("f32[1]", "i64[0] = []", "f32[]"),
      to("f32[2,3,4]", "i64[2] = [5, 5]", "[E39] Reshape \"n\": [2,3,4] does not reshape to [5,5]"),
      to("f32[2,3,4]", "i64[2] = [-1, 7]",
         "[E39] Reshape \"n\": [2,3,4] does not reshape to [-1,7]"),
      to("f32[2,3,4]", "i64[2] = [-1, -1]", "[E39] Reshape \"n\": shape [-1,-1] holds -1 twice"),
      to("f32[2]", "i64[2] = [2, 0]",
         "[E39] Reshape \"n\": shape [2,0] copies axis 1 of [2], which has only 1"),
      {{13, {kX}, "Flatten(x) {axis=2}"}, "f32[6,4]"},
      {{13, {kX}, "Flatten(x) {axis=-3}"}, "f32[1,24]"},
      {{13, {"x : f32[N,3,4]"}, "Flatten(x)"}, "f32[N,12]"},
      {{13, {kX}, "Flatten(x) {axis=4}"},
       "[E39] Flatten \"n\": axis 4 lies outside [-3, 3] of rank 3"},
  });
}

TEST(OpsMovement, TakesAxesFromAttributeOrInputByOperatorSet) {
  const std::string axes = "a : i64[1] = [1]";
  check({
      {{11, {"x : f32[2,1,4]"}, "Squeeze(x) {axes=[1]}"}, "f32[2,4]"},
      {{13, {"x : f32[2,1,4]", axes}, "Squeeze(x, a)"}, "f32[2,4]"},
      {{13, {"x : f32[2,1,4]", "a : i64[1]"}, "Squeeze(x, a)"}, "f32[?,?]"},
      {{13, {"x : f32[2,1,1]"}, "Squeeze(x)"}, "f32[2]"},
      {{13, {"x : f32[N,1,1]"}, "Squeeze(x)"}, "f32[...]"},
      {{13, {"x : f32[2,1,4]"}, "Squeeze(x) {axes=[1]}"},
       "[E39] Squeeze \"n\": \"axes\" is an attribute, but at opset 13 it is input 1 (an attribute "
       "below 13)"},
      {{11, {"x : f32[2,1,4]", axes}, "Squeeze(x, a)"},
       "[E39] Squeeze \"n\": has input 1, but at opset 11 \"axes\" is an attribute (an input from "
       "13)"},
      {{13, {kX, axes}, "Squeeze(x, a)"},
       "[E39] Squeeze \"n\": axis 1 of [2,3,4] has length 3, expected 1"},
      {{11, {kX}, "Unsqueeze(x) {axes=[0, -1]}"}, "f32[1,2,3,4,1]"},
      {{13, {kX, "a : i64[2] = [0, 0]"}, "Unsqueeze(x, a)"},
       "[E39] Unsqueeze \"n\": axes [0,0] name one axis twice"},
      {{17, {kX}, "ReduceMax(x) {axes=[1]}"}, "f32[2,1,4]"},
      {{18, {kX, axes}, "ReduceMax(x, a) {keepdims=0}"}, "f32[2,4]"},
      {{18, {kX}, "ReduceMean(x) {keepdims=0}"}, "f32[]"},
      {{18, {kX}, "ReduceMean(x) {noop_with_empty_axes=1}"}, "f32[2,3,4]"},
      {{18, {kX, "a : i64[2]"}, "ReduceMean(x, a) {keepdims=0}"}, "f32[?]"},
      {{13, {kX, axes}, "ReduceSum(x, a)"}, "f32[2,1,4]"},
      {{11, {kX}, "ReduceSum(x) {axes=[3]}"},
       "[E39] ReduceSum \"n\": axis 3 lies outside [-3, 2] of rank 3"},
      {{12, {kX}, "ArgMax(x) {axis=-1, keepdims=0}"}, "i64[2,3]"},
      {{12, {"x : f32[0,3]"}, "ArgMin(x)"},
       "[E39] ArgMin \"n\": axis 0 of [0,3] is empty, so it has no extreme"},
      {{14, {kX, "a : i64[] = [3]"}, "CumSum(x, a)"},
       "[E39] CumSum \"n\": axis 3 lies outside [-3, 2] of rank 3"},
  });
}

TEST(OpsMovement, JoinsAndSplits) {
  check({
      {{13, {kX, "y : f32[2,5,4]"}, "Concat(x, y) {axis=1}"}, "f32[2,8,4]"},
      {{13, {"x : f32[N,3]", "y : f32[2,?]"}, "Concat(x, y) {axis=-1}"}, "f32[2,?]"},
      {{13, {kX, "y : f32[2,5,5]"}, "Concat(x, y) {axis=1}"},
       "[E39] Concat \"n\": axis 2 of input 1 [2,5,5]: have 4 and 5, expected the same"},
      {{13, {kX, "y : f32[2,5]"}, "Concat(x, y) {axis=1}"},
       "[E39] Concat \"n\": input 1 has rank 2, expected 3 like the others"},
      {{13, {kX}, "Concat(x)"}, "[E39] Concat \"n\": has no axis"},
      {{11, {"x : f32[6]"}, "Split(x)", 3}, "f32[2] f32[2] f32[2]"},
      {{11, {"x : f32[6]"}, "Split(x) {split=[1, 5]}", 2}, "f32[1] f32[5]"},
      {{13, {"x : f32[6]", "s : i64[2] = [4, 2]"}, "Split(x, s)", 2}, "f32[4] f32[2]"},
      {{18, {"x : f32[7]"}, "Split(x) {num_outputs=3}", 3}, "f32[3] f32[3] f32[1]"},
      {{13, {"x : f32[7]"}, "Split(x)", 3},
       "[E39] Split \"n\": length 7 (axis 0 of [7]) does not divide into 3 parts"},
      {{13, {"x : f32[6]", "s : i64[2] = [4, 3]"}, "Split(x, s)", 2},
       "[E39] Split \"n\": split [4,3] adds up to 7, expected 6 (axis 0 of [6])"},
      {{13, {kX}, "Transpose(x)"}, "f32[4,3,2]"},
      {{13, {"x : f32[N,3,M]"}, "Transpose(x) {perm=[2, 0, 1]}"}, "f32[M,N,3]"},
      {{13, {kX}, "Transpose(x) {perm=[0, 0, 1]}"},
       "[E39] Transpose \"n\": perm [0,0,1] is not a permutation of the 3 axes of [2,3,4]"},
      {{13, {kX, "r : i64[3] = [2, 1, 0]"}, "Tile(x, r)"}, "f32[4,3,0]"},
      {{13, {"x : f32[3,1]", "s : i64[3] = [2, 1, 6]"}, "Expand(x, s)"}, "f32[2,3,6]"},
      {{13, {"x : f32[1,8,2,3]"}, "DepthToSpace(x) {blocksize=2}"}, "f32[1,2,4,6]"},
      {{13, {"x : f32[1,2,4,6]"}, "SpaceToDepth(x) {blocksize=2}"}, "f32[1,8,2,3]"},
      {{13, {"x : f32[1,2,5,6]"}, "SpaceToDepth(x) {blocksize=2}"},
       "[E39] SpaceToDepth \"n\": axis 2 of [1,2,5,6] does not divide by blocksize 2"},
  });
}

TEST(OpsMovement, CutsAndPads) {
  check({
      {{9, {kX}, "Slice(x) {axes=[1], ends=[3], starts=[1]}"}, "f32[2,2,4]"},
      {{13,
        {"x : f32[20]", "s : i64[1] = [19]", "e : i64[1] = [-9223372036854775808]",
         "a : i64[1] = [0]", "t : i64[1] = [-3]"},
        "Slice(x, s, e, a, t)"},
       "f32[7]"},
      {{13,
        {"x : f32[20]", "s : i64[1] = [-3]", "e : i64[1] = [9223372036854775807]"},
        "Slice(x, s, e)"},
       "f32[3]"},
      {{13, {"x : f32[20]", "s : i64[1] = [50]", "e : i64[1] = [60]"}, "Slice(x, s, e)"}, "f32[0]"},
      {{13,
        {"x : f32[N,4]", "s : i64[1] = [0]", "e : i64[1] = [9223372036854775807]"},
        "Slice(x, s, e)"},
       "f32[N,4]"},
      {{13, {"x : f32[N,4]", "s : i64[1] = [1]", "e : i64[1] = [3]"}, "Slice(x, s, e)"},
       "f32[?,4]"},
      {{13, {kX, "s : i64[1]", "e : i64[1]"}, "Slice(x, s, e)"}, "f32[?,3,4]"},
      {{13, {kX, "s : i64[1] = [0]", "e : i64[2] = [1, 1]"}, "Slice(x, s, e)"},
       "[E39] Slice \"n\": starts, ends, axes and steps have 1 and 2 entries, expected as many "
       "each"},
      {{13,
        {kX, "s : i64[1] = [0]", "e : i64[1] = [1]", "a : i64[1] = [0]", "t : i64[1] = [0]"},
        "Slice(x, s, e, a, t)"},
       "[E39] Slice \"n\": step 0 of axis 0 is 0"},
      {{7, {"x : f32[3,4]"}, "Pad(x) {pads=[0, 1, 2, 3]}"}, "f32[5,8]"},
      {{13, {"x : f32[3,4]", "p : i64[4] = [0, -1, 0, 0]"}, "Pad(x, p)"}, "f32[3,3]"},
      {{18, {"x : f32[3,4]", "p : i64[2] = [1, 1]", "a : i64[1] = [-1]"}, "Pad(x, p, _, a)"},
       "f32[3,6]"},
      {{18, {"x : f32[3,4]", "p : i64[2] = [1, 1]"}, "Pad(x, p) {mode=\"wrap\"}"},
       "[E39] Pad \"n\": mode is \"wrap\", expected constant, reflect, edge"},
      {{13, {"x : f32[3,4]", "p : i64[3] = [1, 1, 1]"}, "Pad(x, p)"},
       "[E39] Pad \"n\": pads has 3 entries, expected 4 for 2 axes"},
      {{18, {kX, "s : i64[2] = [5, 1]"}, "CenterCropPad(x, s) {axes=[0, 2]}"}, "f32[5,3,1]"},
      {{18, {"x : f32[1,10,12]", "i : i64[2] = [5, 5]", "b : i64[2] = [1, 5]"}, "Col2Im(x, i, b)"},
       "f32[1,2,5,5]"},
  });
}

TEST(OpsIndexing, ReplacesAxesByIndices) {
  check({
      {{13, {kX, "i : i64[5,6]"}, "Gather(x, i) {axis=1}"}, "f32[2,5,6,4]"},
      {{13, {kX, "i : i64[]"}, "Gather(x, i)"}, "f32[3,4]"},
      {{13, {kX, "i : f32[1]"}, "Gather(x, i)"},
       "[E39] Gather \"n\": indices (input 1) is f32, expected one of: i32, i64"},
      {{13, {kX, "i : i32[2,1,4]"}, "GatherElements(x, i) {axis=1}"}, "f32[2,1,4]"},
      {{13, {kX, "i : i64[7,2]"}, "GatherND(x, i)"}, "f32[7,4]"},
      {{13, {kX, "i : i64[2,1]"}, "GatherND(x, i) {batch_dims=1}"}, "f32[2,4]"},
      {{13, {kX, "i : i64[7,4]"}, "GatherND(x, i)"},
       "[E39] GatherND \"n\": indices [7,4] address 4 axes behind 0 batch axes of data [2,3,4]"},
      {{18,
        {kX, "i : i64[1,1,1]", "u : f32[1,1,1]"},
        "ScatterElements(x, i, u) {reduction=\"max\"}"},
       "f32[2,3,4]"},
      {{16,
        {kX, "i : i64[1,1,1]", "u : f32[1,1,1]"},
        "ScatterElements(x, i, u) {reduction=\"max\"}"},
       "[E39] ScatterElements \"n\": reduction is \"max\", expected none, add and mul (opset 16) "
       "or min and max (18)"},
      {{16, {kX, "i : i64[5,1]", "u : f32[5,3,4]"}, "ScatterND(x, i, u)"}, "f32[2,3,4]"},
      {{16, {kX, "i : i64[5,1]", "u : f32[5,3]"}, "ScatterND(x, i, u)"},
       "[E39] ScatterND \"n\": updates are [5,3], expected [5,3,4]"},
      {{9, {kX}, "TopK(x) {k=2}", 2}, "f32[2,3,2] i64[2,3,2]"},
      {{11, {kX, "k : i64[1] = [2]"}, "TopK(x, k) {axis=1}", 2}, "f32[2,2,4] i64[2,2,4]"},
      {{11, {kX, "k : i64[1]"}, "TopK(x, k)", 2}, "f32[2,3,?] i64[2,3,?]"},
      {{11, {kX, "k : i64[1] = [5]"}, "TopK(x, k)", 2},
       "[E39] TopK \"n\": k is 5, expected 0 to 4 (axis 2 of [2,3,4])"},
      {{13, {kX}, "NonZero(x)"}, "i64[3,?]"},
      {{11, {"i : i64[2,3]", "d : i64[] = [7]", "v : f16[2]"}, "OneHot(i, d, v) {axis=1}"},
       "f16[2,7,3]"},
      {{11, {kX}, "Unique(x)", 4}, "f32[?] i64[?] i64[24] i64[?]"},
      {{11, {kX, "c : bool[2]"}, "Compress(x, c) {axis=1}"}, "f32[2,?,4]"},
      {{11, {"b : f32[1,6,4]", "s : f32[1,2,6]"}, "NonMaxSuppression(b, s)"}, "i64[?,3]"},
      {{11, {"b : f32[1,6,4]", "s : f32[1,2,5]"}, "NonMaxSuppression(b, s)"},
       "[E39] NonMaxSuppression \"n\": boxes and scores of a class: have 6 and 5, expected the "
       "same"},
  });
}

// A chain of a few dozen such nodes would otherwise ask for all memory there is.
TEST(OpsIndexing, RanksThatAddUpStayBounded) {
  const std::string wide = "x : i64[1" + [] {
    std::string more;
    for (int i = 0; i < 32; ++i) more += ",1";
    return more;
  }() + "]";
  check({
      {{13, {wide}, "Gather(x, x)"}, "[E39] Gather \"n\": gives 65 axes, allowed are 64"},
      {{13, {wide}, "GatherND(x, x)"}, "[E39] GatherND \"n\": gives 66 axes, allowed are 64"},
      {{13, {"s : i64[1000000]"}, "ConstantOfShape(s)"}, "f32[...]"},
  });
}

TEST(OpsResize, ScalesInSinglePrecision) {
  check({
      {{13, {"x : f32[1,1,2,4]", "s : f32[4] = [1.0, 1.0, 0.6, 0.6]"}, "Resize(x, _, s)"},
       "f32[1,1,1,2]"},
      // 10 * 0.7f is 7 in single precision, below 7 in double.
      {{13, {"x : f32[10]", "s : f32[1] = [0.7]"}, "Resize(x, _, s)"}, "f32[7]"},
      {{10, {"x : f32[1,1,2,4]", "s : f32[4] = [1.0, 1.0, 2.0, 3.0]"}, "Resize(x, s)"},
       "f32[1,1,4,12]"},
      {{11,
        {"x : f32[2,4]", "r : f32[0]", "s : f32[0]", "z : i64[2] = [3, 3]"},
        "Resize(x, r, s, z)"},
       "f32[3,3]"},
      {{18,
        {"x : f32[1,1,2,4]", "z : i64[2] = [7, 8]"},
        "Resize(x, _, _, z) {axes=[2, 3], keep_aspect_ratio_policy=\"not_larger\"}"},
       "f32[1,1,4,8]"},
      {{18,
        {"x : f32[1,1,2,4]", "z : i64[2] = [7, 8]"},
        "Resize(x, _, _, z) {axes=[2, 3], keep_aspect_ratio_policy=\"not_smaller\"}"},
       "f32[1,1,7,14]"},
      {{13, {"x : f32[N,3]", "s : f32[2] = [1.0, 2.0]"}, "Resize(x, _, s)"}, "f32[N,6]"},
      {{13, {"x : f32[4]"}, "Resize(x)"},
       "[E39] Resize \"n\": has neither scales nor sizes, expected one"},
      {{13, {"x : f32[4]", "s : f32[1] = [-1.0]"}, "Resize(x, _, s)"},
       "[E39] Resize \"n\": scale is -1, expected above 0"},
      {{7, {"x : f32[1,1,2,2]"}, "Upsample(x) {scales=[1.0, 1.0, 2.0, 3.0]}"}, "f32[1,1,4,6]"},
      {{9, {"x : f32[2,2]", "s : f32[2] = [2.0, 3.0]"}, "Upsample(x, s)"}, "f32[4,6]"},
      {{16, {"x : f32[2,3,4,5]", "g : f32[2,7,8,2]"}, "GridSample(x, g)"}, "f32[2,3,7,8]"},
      {{20, {"t : f32[2,2,3]", "s : i64[4] = [2, 3, 5, 6]"}, "AffineGrid(t, s)"}, "f32[2,5,6,2]"},
  });
}

TEST(OpsGenerator, MakesFromShapesAndNumbers) {
  check({
      {{13, {kX}, "Shape(x)"}, "i64[3]"},
      {{15, {kX}, "Shape(x) {end=-1, start=1}"}, "i64[1]"},
      {{15, {kX}, "Shape(x) {end=1, start=2}"}, "i64[0]"},
      {{13, {"x : f32[...]"}, "Shape(x)"}, "i64[?]"},
      {{13, {kX}, "Size(x)"}, "i64[]"},
      {{9, {"s : i64[2] = [3, 0]"}, "ConstantOfShape(s)"}, "f32[3,0]"},
      {{9, {"s : i64[2] = [3, 1]"}, "ConstantOfShape(s) {value=i32[1] = [7]}"}, "i32[3,1]"},
      {{9, {"s : i64[1] = [-3]"}, "ConstantOfShape(s)"},
       "[E39] ConstantOfShape \"n\": shape [-3] is negative"},
      {{11, {"a : i64[] = [1]", "b : i64[] = [8]", "d : i64[] = [3]"}, "Range(a, b, d)"}, "i64[3]"},
      {{11, {"a : f32[] = [5.0]", "b : f32[] = [1.0]", "d : f32[] = [-1.5]"}, "Range(a, b, d)"},
       "f32[3]"},
      {{11, {"a : i64[] = [8]", "b : i64[] = [1]", "d : i64[] = [3]"}, "Range(a, b, d)"}, "i64[0]"},
      {{11, {"a : i64[] = [8]", "b : i64[] = [1]", "d : i64[] = [0]"}, "Range(a, b, d)"},
       "[E39] Range \"n\": delta is 0"},
      {{11,
        {"a : i64[] = [-9223372036854775808]", "b : i64[] = [9223372036854775807]",
         "d : i64[] = [1]"},
        "Range(a, b, d)"},
       "[E39] Range \"n\": counts 1.8446744073709552e+19 elements, expected at most 2^48"},
      {{13, {"x : f32[3,4]"}, "EyeLike(x) {dtype=7}"}, "i64[3,4]"},
      {{20, {}, "Fill() {shape=[2, 3]}"}, "f32[2,3]"},
      {{20, {}, "Fill()"}, "f32[1]"},
      {{13, {"x : f32[2,3]", "s : f32[3]", "z : i8[3]"}, "QuantizeLinear(x, s, z)"}, "i8[2,3]"},
      {{21, {"x : f32[2,3]", "s : f32[]"}, "QuantizeLinear(x, s) {output_dtype=5}"}, "i16[2,3]"},
      {{21, {"x : f32[2,7]", "s : f32[2,3]"}, "QuantizeLinear(x, s) {axis=1, block_size=3}"},
       "u8[2,7]"},
      {{13, {"x : f32[2,3]", "s : f32[4]"}, "QuantizeLinear(x, s)"},
       "[E39] QuantizeLinear \"n\": length of y_scale and axis 1 of [2,3]: have 4 and 3, expected "
       "the same"},
      {{19, {"x : u8[2,3]", "s : f16[]"}, "DequantizeLinear(x, s)"}, "f16[2,3]"},
      {{11, {"x : f32[2,3]"}, "DynamicQuantizeLinear(x)", 3}, "u8[2,3] f32[] u8[]"},
      {{17, {"n : i64[] = [10]"}, "HannWindow(n)"}, "f32[10]"},
      {{17, {"x : f32[1,8,1]"}, "DFT(x) {onesided=1}"}, "f32[1,5,2]"},
      {{20, {"x : f32[1,8,1]", "n : i64[] = [6]"}, "DFT(x, n)"}, "f32[1,6,2]"},
      {{17, {"x : f32[1,128,1]", "s : i64[] = [8]", "w : f32[16]"}, "STFT(x, s, w)"},
       "f32[1,15,9,2]"},
      {{17,
        {"b : i64[] = [8]", "n : i64[] = [16]", "r : i64[] = [8192]", "l : f32[]", "u : f32[]"},
        "MelWeightMatrix(b, n, r, l, u)"},
       "f32[9,8]"},
      {{13,
        {"x : f32[3,5,2]", "t : i64[3,2]"},
        "SoftmaxCrossEntropyLoss(x, t) {reduction=\"none\"}",
        2},
       "f32[3,2] f32[3,5,2]"},
      {{13, {"x : f32[3,5]", "t : i64[3]", "w : f32[5]"}, "NegativeLogLikelihoodLoss(x, t, w)"},
       "f32[]"},
  });
}

TEST(OpsControl, KnowsElementTypesOfCarriedValues) {
  check({
      {{16, {"n : i64[]", "c : bool[]", kX}, "Loop(n, c, x)", 2}, "f32[...] ?[...]"},
      {{16, {"n : i64[]", "c : bool[]", kX}, "Loop(n, c, x, x)", 1},
       "[E39] Loop \"n\": has 1 outputs, expected at least the 2 carried values"},
      {{16, {kX}, "If(x)"}, "[E39] If \"n\": cond (input 0) is f32, expected one of: bool"},
      {{16, {kX}, "Scan(x) {num_scan_inputs=2}"},
       "[E39] Scan \"n\": num_scan_inputs is 2, expected 1 to 1"},
  });
}

}  // namespace
}  // namespace millstream::testing
