// SPDX-License-Identifier: Apache-2.0
// Shapes of what networks are made of: elementwise, matrix, convolution, pooling, norms, recurrent.
#include <gtest/gtest.h>

#include "tests/ops_row.h"

namespace millstream::testing {
namespace {

void check(const std::vector<OpRow>& rows) {
  for (const OpRow& row : rows) {
    EXPECT_EQ(shapes_text(row.call), row.want) << row.call.call << " at opset " << row.call.opset;
  }
}

const std::string kX = "x : f32[2,6,9,11]";

TEST(OpsElementwise, BroadcastsLikeNumpy) {
  check({
      {{13, {"a : f32[2,3]", "b : f32[3]"}, "Add(a, b)"}, "f32[2,3]"},
      {{13, {"a : f32[2,1,4]", "b : f32[3,1]"}, "Mul(a, b)"}, "f32[2,3,4]"},
      {{13, {"a : f32[N,1]", "b : f32[1,M]"}, "Sub(a, b)"}, "f32[N,M]"},
      {{13, {"a : f32[N,3]", "b : f32[N,3]"}, "Div(a, b)"}, "f32[N,3]"},
      {{13, {"a : f32[N,3]", "b : f32[M,3]"}, "Add(a, b)"}, "f32[?,3]"},
      {{13, {"a : f32[N]", "b : f32[4]"}, "Add(a, b)"}, "f32[4]"},
      {{13, {"a : f32[0]", "b : f32[1]"}, "Add(a, b)"}, "f32[0]"},
      {{13, {"a : f32[...]", "b : f32[4]"}, "Add(a, b)"}, "f32[...]"},
      {{13, {"a : i32[2]", "b : i32[]"}, "Less(a, b)"}, "bool[2]"},
      {{13, {"a : f32[2]", "b : i64[2]"}, "Pow(a, b)"}, "f32[2]"},
      {{13, {"a : f32[2]", "b : f32[3,1]", "c : f32[1,2]"}, "Mean(a, b, c)"}, "f32[3,2]"},
      {{13, {"c : bool[3,1]", "a : i8[2]", "b : i8[]"}, "Where(c, a, b)"}, "i8[3,2]"},
      {{13, {"a : f32[2,3]", "b : f32[4]"}, "Add(a, b)"},
       "[E39] Add \"n\": shapes [2,3] and [4] do not broadcast: 3 against 4 on axis 1 of 2"},
      {{13, {"a : f32[2]", "b : i32[2]"}, "Add(a, b)"},
       "[E39] Add \"n\": input 0 is f32 but input 1 is i32, expected the same element type"},
      {{7, {"a : f32[2]", "b : i64[2]"}, "Pow(a, b)"},
       "[E39] Pow \"n\": input 0 is f32 but input 1 is i64, expected the same element type"},
      {{13, {"a : bool[2]"}, "Sqrt(a)"},
       "[E39] Sqrt \"n\": input (input 0) is bool, expected one of: f32, f16, f64, bf16"},
      {{16, {"a : f32[2,3]", "b : f32[4,2,3]"}, "PRelu(a, b)"},
       "[E39] PRelu \"n\": slope has shape [4,2,3], which does not broadcast to [2,3]"},
  });
}

TEST(OpsElementwise, FollowsWhatOperatorSetsChanged) {
  check({
      {{6, {kX}, "Clip(x) {max=6.0, min=0.0}"}, "f32[2,6,9,11]"},
      {{11, {kX, "l : f32[] = [0.0]"}, "Clip(x, l)"}, "f32[2,6,9,11]"},
      {{11, {kX, "l : f32[2] = [0.0, 1.0]"}, "Clip(x, l)"},
       "[E39] Clip \"n\": min (input 1) has shape [2], expected a scalar"},
      {{10, {kX, "l : f32[] = [0.0]"}, "Clip(x, l)"},
       "[E39] Clip \"n\": has bounds as inputs, which begin at opset 11"},
      {{7, {"a : f32[2]"}, "Dropout(a)", 2}, "f32[2] f32[2]"},
      {{13, {"a : f32[2]"}, "Dropout(a)", 2}, "f32[2] bool[2]"},
      {{13, {"a : f32[2]", "r : f32[] = [0.5]", "t : bool[] = [0]"}, "Dropout(a, r, t)"}, "f32[2]"},
      {{13, {"a : f32[2]", "r : f32[] = [0.5]", "t : bool[] = [1]"}, "Dropout(a, r, t)"},
       "[E01] Dropout \"n\": training with ratio 0.5 draws random numbers, and there is no seed"},
      {{13, {"a : f32[2]", "r : f32[] = [0.0]", "t : bool[] = [1]"}, "Dropout(a, r, t)"}, "f32[2]"},
      {{13, {"a : f32[2]"}, "Cast(a) {to=10}"}, "f16[2]"},
      {{13, {"a : f32[2]"}, "Cast(a)"},
       "[E39] Cast \"n\": to is 0, expected the number of an element type (1 to 26)"},
      {{15, {"a : f32[2]", "b : i8[7]"}, "CastLike(a, b)"}, "i8[2]"},
      {{6, {"a : f32[2,3,4]", "b : f32[3,4]"}, "Add(a, b) {axis=1, broadcast=1}"}, "f32[2,3,4]"},
      {{6, {"a : f32[3,3,3]", "b : f32[3]"}, "Add(a, b) {axis=0, broadcast=1}"},
       "[E01] Add \"n\": aligns B [3] at axis 0 of A [3,3,3], expected at its last axes"},
      {{6, {"a : f32[1,3,5,3]", "b : f32[3]"}, "PRelu(a, b)"},
       "[E01] PRelu \"n\": has a slope a channel at opset 6, expected one"},
      {{13, {"a : f32[2]"}, "Mod(a, a)"},
       "[E39] Mod \"n\": has f32 inputs and fmod=0, expected integers or fmod=1"},
      {{13, {"a : f32[2]"}, "Mod(a, a) {fmod=1}"}, "f32[2]"},
  });
}

TEST(OpsMatrix, MultipliesLikeNumpy) {
  check({
      {{13, {"a : f32[2,3]", "b : f32[3,4]"}, "MatMul(a, b)"}, "f32[2,4]"},
      {{13, {"a : f32[3]", "b : f32[3]"}, "MatMul(a, b)"}, "f32[]"},
      {{13, {"a : f32[3]", "b : f32[5,3,4]"}, "MatMul(a, b)"}, "f32[5,4]"},
      {{13, {"a : f32[7,1,2,3]", "b : f32[5,3,4]"}, "MatMul(a, b)"}, "f32[7,5,2,4]"},
      {{13, {"a : f32[N,2,K]", "b : f32[3,4]"}, "MatMul(a, b)"}, "f32[N,2,4]"},
      {{13, {"a : f32[2,3]", "b : f32[4,4]"}, "MatMul(a, b)"},
       "[E39] MatMul \"n\": inner dimensions of [2,3] and [4,4]: have 3 and 4, expected the same"},
      {{13, {"a : f32[]", "b : f32[4]"}, "MatMul(a, b)"},
       "[E39] MatMul \"n\": A (input 0) has rank 0 [], expected at least 1"},
      {{13, {"a : u8[2,3]", "b : i8[3,4]"}, "MatMulInteger(a, b)"}, "i32[2,4]"},
      {{11, {"a : f32[3,2]", "b : f32[4,3]"}, "Gemm(a, b) {transA=1, transB=1}"}, "f32[2,4]"},
      {{13, {"a : f32[N,3]", "b : f32[3,4]", "c : f32[4]"}, "Gemm(a, b, c)"}, "f32[N,4]"},
      {{13, {"a : f32[2,3]", "b : f32[3,4]", "c : f32[3]"}, "Gemm(a, b, c)"},
       "[E39] Gemm \"n\": C has shape [3], which does not broadcast to [2,4]"},
      {{13, {"a : f32[2,3]", "b : f32[3,4]"}, "Gemm(a, b) {transB=1}"},
       "[E39] Gemm \"n\": inner dimensions of [2,3] and [3,4] transposed: have 3 and 4, expected "
       "the same"},
      {{7, {"a : f32[2,3]", "b : f32[3,4]"}, "Gemm(a, b)"},
       "[E39] Gemm \"n\": has no C, which is optional from opset 11 only"},
      {{13, {"a : f32[5,3,3]"}, "Det(a)"}, "f32[5]"},
      {{13, {"a : f32[2,3]", "b : f32[3,4]"}, "Einsum(a, b) {equation=\"ij,jk->ik\"}"}, "f32[2,4]"},
      {{13, {"a : f32[2,3]"}, "Einsum(a) {equation=\"ji\"}"}, "f32[3,2]"},
      {{13, {"a : f32[7,2,3]", "b : f32[3,4]"}, "Einsum(a, b) {equation=\"...ij, jk -> ...ik\"}"},
       "f32[7,2,4]"},
      // A length of 1 gives way to whatever the unknown one turns out to be.
      {{13, {"a : f32[?]", "b : f32[1]"}, "Einsum(a, b) {equation=\"i,i->i\"}"}, "f32[?]"},
      {{13, {"a : f32[N]", "b : f32[N]"}, "Einsum(a, b) {equation=\"i,i->i\"}"}, "f32[N]"},
      {{13, {"a : f32[N]", "b : f32[4]"}, "Einsum(a, b) {equation=\"i,i->i\"}"}, "f32[4]"},
      {{13, {"a : f32[3,3]"}, "Einsum(a) {equation=\"ii\"}"}, "f32[]"},
      {{13, {"a : f32[2,3]", "b : f32[4,4]"}, "Einsum(a, b) {equation=\"ij,jk->ik\"}"},
       "[E39] Einsum \"n\": axis 'j' of equation \"ij,jk->ik\": have 3 and 4, expected the same"},
      {{13, {"a : f32[2,3]"}, "Einsum(a) {equation=\"ij,jk->ik\"}"},
       "[E39] Einsum \"n\": equation \"ij,jk->ik\" has 2 terms for 1 inputs"},
      {{13, {"a : f32[2,3]"}, "Einsum(a) {equation=\"ij->iz\"}"},
       "[E39] Einsum \"n\": equation \"ij->iz\" names 'z' in the output only"},
  });
}

TEST(OpsConvolution, CountsWindows) {
  check({
      {{11, {kX, "w : f32[4,6,3,3]"}, "Conv(x, w)"}, "f32[2,4,7,9]"},
      {{11, {kX, "w : f32[4,6,3,3]"}, "Conv(x, w) {pads=[1, 0, 1, 2], strides=[2, 1]}"},
       "f32[2,4,5,11]"},
      {{11, {kX, "w : f32[4,6,3,3]"}, "Conv(x, w) {dilations=[2, 3]}"}, "f32[2,4,5,5]"},
      {{11, {kX, "w : f32[4,3,3,3]"}, "Conv(x, w) {group=2}"}, "f32[2,4,7,9]"},
      {{11, {kX, "w : f32[4,6,3,3]"}, "Conv(x, w) {auto_pad=\"SAME_UPPER\", strides=[2, 2]}"},
       "f32[2,4,5,6]"},
      {{11, {kX, "w : f32[4,6,3,3]"}, "Conv(x, w) {auto_pad=\"VALID\"}"}, "f32[2,4,7,9]"},
      {{11, {"x : f32[N,6,H,11]", "w : f32[4,6,3,3]"}, "Conv(x, w)"}, "f32[N,4,?,9]"},
      {{11, {"x : f32[1,2,8]", "w : f32[3,2,8]"}, "Conv(x, w)"}, "f32[1,3,1]"},
      {{11, {kX, "w : f32[4,5,3,3]"}, "Conv(x, w)"},
       "[E39] Conv \"n\": input channels of X [2,6,9,11] and W [4,5,3,3] with group 1: have 6 and "
       "5, expected the same"},
      {{11, {kX, "w : f32[3,3,3,3]"}, "Conv(x, w) {group=2}"},
       "[E39] Conv \"n\": 3 output channels do not divide into 2 groups"},
      {{11, {kX, "w : f32[4,6,3,3]", "b : f32[5]"}, "Conv(x, w, b)"},
       "[E39] Conv \"n\": bias length and output channels: have 5 and 4, expected the same"},
      {{11, {kX, "w : f32[4,6,3,3]"}, "Conv(x, w) {kernel_shape=[3, 5]}"},
       "[E39] Conv \"n\": kernel_shape [3,5] disagrees with weights [4,6,3,3]"},
      {{11, {kX, "w : f32[4,6,12,3]"}, "Conv(x, w)"},
       "[E39] Conv \"n\": a window spanning 12 does not fit 9 elements with padding 0 and 0"},
      {{11, {kX, "w : f32[4,6,3,3]"}, "Conv(x, w) {strides=[0, 1]}"},
       "[E39] Conv \"n\": strides [0,1] holds 0, expected 1 to 2^31"},
      {{11, {"x : f32[1,3,4,5]", "w : f32[3,2,3,3]"}, "ConvTranspose(x, w)"}, "f32[1,2,6,7]"},
      {{11,
        {"x : f32[1,3,4,5]", "w : f32[3,2,3,3]"},
        "ConvTranspose(x, w) {output_padding=[1, 1], pads=[1, 1, 1, 1], strides=[2, 2]}"},
       "f32[1,2,8,10]"},
      {{11,
        {"x : f32[1,3,4,5]", "w : f32[3,2,3,3]"},
        "ConvTranspose(x, w) {auto_pad=\"SAME_UPPER\", strides=[2, 3]}"},
       "f32[1,2,8,15]"},
      {{11,
        {"x : f32[1,3,4,5]", "w : f32[3,2,3,3]"},
        "ConvTranspose(x, w) {output_shape=[10, 8], strides=[3, 2]}"},
       "f32[1,2,10,8]"},
      {{10, {"x : u8[1,1,4,4]", "w : u8[1,1,2,2]"}, "ConvInteger(x, w)"}, "i32[1,1,3,3]"},
      {{10,
        {"x : u8[1,1,4,4]", "s : f32[]", "z : u8[]", "w : i8[2,1,2,2]", "wz : i8[]", "yz : i8[]"},
        "QLinearConv(x, s, z, w, s, wz, s, yz)"},
       "i8[1,2,3,3]"},
  });
}

TEST(OpsPooling, CountsWindows) {
  check({
      {{12, {kX}, "MaxPool(x) {kernel_shape=[2, 2], strides=[2, 2]}"}, "f32[2,6,4,5]"},
      {{12, {kX}, "MaxPool(x) {ceil_mode=1, kernel_shape=[2, 2], strides=[2, 2]}"}, "f32[2,6,5,6]"},
      {{12, {kX}, "MaxPool(x) {kernel_shape=[3, 3]}", 2}, "f32[2,6,7,9] i64[2,6,7,9]"},
      // The last window would begin in the right padding: dropped.
      {{12, {"x : f32[1,1,2,2]"}, "MaxPool(x) {ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2]}"},
       "f32[1,1,1,1]"},
      {{11, {kX}, "AveragePool(x) {auto_pad=\"SAME_LOWER\", kernel_shape=[3, 3], strides=[2, 2]}"},
       "f32[2,6,5,6]"},
      {{11, {kX}, "AveragePool(x)"}, "[E39] AveragePool \"n\": has no kernel_shape"},
      {{11, {kX}, "AveragePool(x) {kernel_shape=[2]}"},
       "[E39] AveragePool \"n\": kernel_shape has 1 entries, expected 2"},
      {{11, {kX}, "GlobalAveragePool(x)"}, "f32[2,6,1,1]"},
      {{11, {"x : f32[N,6,?]"}, "GlobalMaxPool(x)"}, "f32[N,6,1]"},
      {{11,
        {"x : f32[1,1,2,2]", "i : i64[1,1,2,2]"},
        "MaxUnpool(x, i) {kernel_shape=[2, 2], strides=[2, 2]}"},
       "f32[1,1,4,4]"},
      {{11,
        {"x : f32[1,1,2,2]", "i : i64[1,1,2,2]", "s : i64[4] = [1, 1, 5, 5]"},
        "MaxUnpool(x, i, s) {kernel_shape=[2, 2], strides=[2, 2]}"},
       "f32[1,1,5,5]"},
      {{16,
        {"x : f32[1,3,9,9]", "r : f32[R,4]", "b : i64[R]"},
        "RoiAlign(x, r, b) {output_height=5, output_width=4}"},
       "f32[R,3,5,4]"},
      {{11, {"x : f32[1,3,9,9]", "r : f32[2,5]"}, "MaxRoiPool(x, r) {pooled_shape=[2, 3]}"},
       "f32[2,3,2,3]"},
  });
}

TEST(OpsNorm, ChecksChannelsAndAxes) {
  const std::vector<std::string> five = {kX, "c : f32[6]"};
  check({
      {{15, five, "BatchNormalization(x, c, c, c, c)"}, "f32[2,6,9,11]"},
      {{15, five, "BatchNormalization(x, c, c, c, c) {training_mode=1}", 3},
       "f32[2,6,9,11] f32[6] f32[6]"},
      {{15, five, "BatchNormalization(x, c, c, c, c)", 3},
       "[E39] BatchNormalization \"n\": has 3 outputs without training_mode=1, expected 1"},
      {{15, {kX, "c : f32[5]"}, "BatchNormalization(x, c, c, c, c)"},
       "[E39] BatchNormalization \"n\": length of scale (input 1) and channels: have 5 and 6, "
       "expected the same"},
      {{7, five, "BatchNormalization(x, c, c, c, c) {spatial=0}"},
       "[E01] BatchNormalization \"n\": spatial is 0 (statistics for each place), expected 1"},
      {{18, {kX, "g : f32[3]"}, "GroupNormalization(x, g, g) {num_groups=3}"}, "f32[2,6,9,11]"},
      {{21, {kX, "g : f32[3]"}, "GroupNormalization(x, g, g) {num_groups=3}"},
       "[E39] GroupNormalization \"n\": length of scale (input 1) and channels: have 3 and 6, "
       "expected the same"},
      {{17, {kX, "s : f32[9,11]"}, "LayerNormalization(x, s) {axis=2}", 3},
       "f32[2,6,9,11] f32[2,6,1,1] f32[2,6,1,1]"},
      {{17, {"x : f16[N,8]", "s : f16[8]"}, "LayerNormalization(x, s)", 2}, "f16[N,8] f32[N,1]"},
      {{17, {kX, "s : f32[10]"}, "LayerNormalization(x, s)"},
       "[E39] LayerNormalization \"n\": Scale has shape [10], which does not broadcast to "
       "[2,6,9,11]"},
      {{23, {"x : f16[N,8]", "s : f32[8]"}, "RMSNormalization(x, s)"}, "f32[N,8]"},
      {{13, {"x : f32[4]"}, "Softmax(x)"}, "f32[4]"},
      {{13, {"x : f32[4]"}, "Softmax(x) {axis=1}"},
       "[E39] Softmax \"n\": axis 1 lies outside [-1, 0] of rank 1"},
      {{11, {"x : f32[4]"}, "Softmax(x)"}, "f32[4]"},
      {{13, {kX}, "LRN(x)"}, "[E39] LRN \"n\": size is 0, expected at least 1"},
  });
}

TEST(OpsRecurrent, KnowsLayoutsAndDirections) {
  const std::vector<std::string> lstm = {"x : f32[5,2,3]", "w : f32[1,16,3]", "r : f32[1,16,4]"};
  check({
      {{14, lstm, "LSTM(x, w, r) {hidden_size=4}", 3}, "f32[5,1,2,4] f32[1,2,4] f32[1,2,4]"},
      {{14,
        {"x : f32[2,5,3]", "w : f32[1,16,3]", "r : f32[1,16,4]"},
        "LSTM(x, w, r) {hidden_size=4, layout=1}",
        2},
       "f32[2,5,1,4] f32[2,1,4]"},
      {{14,
        {"x : f32[S,B,3]", "w : f32[2,12,3]", "r : f32[2,12,4]"},
        "GRU(x, w, r) {direction=\"bidirectional\", hidden_size=4}",
        2},
       "f32[S,2,B,4] f32[2,B,4]"},
      {{14, lstm, "LSTM(x, w, r) {hidden_size=5}"},
       "[E39] LSTM \"n\": last axis of R and hidden_size: have 4 and 5, expected the same"},
      {{14, lstm, "GRU(x, w, r) {hidden_size=4}"},
       "[E39] GRU \"n\": rows of W and gates times hidden_size: have 16 and 12, expected the same"},
      {{14, lstm, "LSTM(x, w, r) {direction=\"both\"}"},
       "[E39] LSTM \"n\": direction is \"both\", expected forward, reverse or bidirectional"},
  });
}

TEST(OpsAttention, CountsHeads) {
  check({
      {{23, {"q : f32[2,4,5,8]", "k : f32[2,2,7,8]", "v : f32[2,2,7,6]"}, "Attention(q, k, v)"},
       "f32[2,4,5,6]"},
      {{23,
        {"q : f32[2,5,32]", "k : f32[2,7,16]", "v : f32[2,7,12]"},
        "Attention(q, k, v) {kv_num_heads=2, q_num_heads=4}",
        4},
       "f32[2,5,24] f32[2,2,7,8] f32[2,2,7,6] f32[2,4,5,7]"},
      {{23, {"q : f32[2,4,5,8]", "p : f32[2,4,3,8]"}, "Attention(q, q, q, _, p, p)", 3},
       "f32[2,4,5,8] f32[2,4,8,8] f32[2,4,8,8]"},
      {{23, {"q : f32[2,5,32]"}, "Attention(q, q, q)"},
       "[E39] Attention \"n\": Q has rank 3, so q_num_heads must be at least 1, have 0"},
      {{23, {"q : f32[2,3,5,8]", "k : f32[2,2,7,8]"}, "Attention(q, k, k)"},
       "[E39] Attention \"n\": 3 query heads do not divide into 2 key heads"},
      {{23,
        {"x : f32[2,5,32]", "c : f32[9,4]", "p : i64[2,5]"},
        "RotaryEmbedding(x, c, c, p) {num_heads=4}"},
       "f32[2,5,32]"},
  });
}

}  // namespace
}  // namespace millstream::testing
