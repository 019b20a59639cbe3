// SPDX-License-Identifier: Apache-2.0
// The operator table as a whole, and costs.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/ops_row.h"

namespace millstream::testing {
namespace {

TEST(OpsTable, RowsAreSoundAndFound) {
  std::set<std::string> seen;
  EXPECT_GE(all_ops().size(), 170u);
  std::string_view before;
  for (const OpSchema& row : all_ops()) {
    EXPECT_TRUE(seen.insert(std::string(row.type)).second) << row.type << " stands twice";
    EXPECT_LE(before, row.type);
    before = row.type;
    EXPECT_EQ(find_op(row.type), &row);
    EXPECT_LE(row.first_opset, row.last_opset) << row.type;
    EXPECT_LE(row.min_inputs, row.max_inputs) << row.type;
    EXPECT_GE(row.min_inputs, 0) << row.type;
    EXPECT_NE(row.shape, nullptr) << row.type;
    EXPECT_NE(row.cost, nullptr) << row.type;
    EXPECT_TRUE(!row.view || row.min_inputs >= 1) << row.type;
  }
  EXPECT_EQ(find_op("NoSuchOperator"), nullptr);
}

TEST(OpsTable, DumpTypesEmitNoTask) {
  for (const std::string_view type :
       {"Data", "Const", "Constant", "Variable", "NetOutput", "FileConstant", "AippData"}) {
    ASSERT_NE(find_op(type), nullptr) << type;
    EXPECT_TRUE(find_op(type)->no_task) << type;
  }
}

TEST(OpsTable, ViewsKeepTheBytesInOrder) {
  std::set<std::string_view> views;
  for (const OpSchema& row : all_ops()) {
    if (row.view) views.insert(row.type);
  }
  EXPECT_EQ(views, (std::set<std::string_view>{"Dropout", "Flatten", "Identity", "Reshape",
                                               "Squeeze", "Unsqueeze"}));
}

TEST(OpsTable, ThePageListsEveryRowAndNoOther) {
  std::ifstream page(MST_SOURCE_DIR "/docs/operators.md");
  ASSERT_TRUE(page) << "docs/operators.md";
  std::set<std::string> listed;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `", 0) == 0)
      listed.insert(line.substr(0, line.find('|', line.find('|', 1) + 1)));
  }
  for (const OpSchema& row : all_ops()) {
    EXPECT_EQ(
        listed.erase(fmt::format("| `{}` | {} to {} ", row.type, row.first_opset, row.last_opset)),
        1u)
        << row.type;
  }
  EXPECT_TRUE(listed.empty()) << *listed.begin() << " has no row";
}

// Every shape function copes with nothing being known about any input: no error, no crash, and as
// many descs as outputs.
TEST(OpsTable, NothingKnownIsNoError) {
  const std::set<std::string_view> needs_attributes = {"AveragePool",
                                                       "BitShift",
                                                       "Cast",
                                                       "Concat",
                                                       "DepthToSpace",
                                                       "Einsum",
                                                       "GroupNormalization",
                                                       "LRN",
                                                       "LpPool",
                                                       "MaxPool",
                                                       "MaxRoiPool",
                                                       "Pad",
                                                       "Resize",
                                                       "STFT",
                                                       "Scan",
                                                       "Slice",
                                                       "SpaceToDepth",
                                                       "TopK",
                                                       "Unsqueeze",
                                                       "Upsample"};
  const TensorDesc nothing;
  for (const OpSchema& row : all_ops()) {
    const std::size_t inputs =
        static_cast<std::size_t>(std::max(row.min_inputs, row.type == "Loop" ? 2 : 0));
    std::vector<const TensorDesc*> descs(inputs, &nothing);
    std::vector<const Tensor*> values(inputs, nullptr);
    const Attrs attrs;
    const std::size_t outputs = row.type == "TopK"                    ? 2
                                : row.type == "DynamicQuantizeLinear" ? 3
                                : row.type == "NetOutput"             ? 0
                                                                      : 1;
    const auto found =
        row.shape(ShapeContext{"n", row.type, attrs, row.last_opset, descs, values, outputs});
    if (needs_attributes.count(row.type) != 0) {
      EXPECT_FALSE(found.ok()) << row.type << " lacks what it needs";
      continue;
    }
    ASSERT_TRUE(found.ok()) << to_string(found.error());
    EXPECT_EQ(found->size(), outputs) << row.type;
  }
}

struct CostRow {
  OpCall call;
  double flops;
  double bytes;
};

TEST(OpsCost, CountsMultiplyAddsAsTwo) {
  const std::vector<CostRow> rows = {
      {{13, {"a : f32[5,2,3]", "b : f32[3,4]"}, "MatMul(a, b)"},
       2.0 * 5 * 2 * 4 * 3,
       4.0 * (30 + 12 + 40)},
      {{13, {"a : f32[3,2]", "b : f32[4,3]", "c : f32[4]"}, "Gemm(a, b, c) {transA=1, transB=1}"},
       2.0 * 2 * 4 * 3,
       4.0 * (6 + 12 + 4 + 8)},
      {{11, {"x : f32[1,6,9,11]", "w : f32[4,3,3,3]"}, "Conv(x, w) {group=2}"},
       2.0 * 4 * 7 * 9 * 3 * 3 * 3,
       4.0 * (6 * 99 + 108 + 4 * 63)},
      {{11, {"x : f32[1,3,4,5]", "w : f32[3,2,3,3]"}, "ConvTranspose(x, w)"},
       2.0 * 60 * 18,
       4.0 * (60 + 54 + 84)},
      {{11, {"x : f32[1,6,9,11]"}, "MaxPool(x) {kernel_shape=[3, 3]}"},
       6.0 * 63 * 9,
       4.0 * (594 + 378)},
      {{11, {"x : f32[1,6,9,11]"}, "GlobalAveragePool(x)"}, 594, 4.0 * (594 + 6)},
      {{13, {"a : f32[2,3]", "b : f32[3]"}, "Add(a, b)"}, 6, 4.0 * (6 + 3 + 6)},
      {{13, {"a : f32[4]"}, "Mean(a, a, a)"}, 8, 4.0 * 16},
      {{13, {"a : f16[8]"}, "Relu(a)"}, 8, 32},
      {{14,
        {"x : f32[5,2,3]", "w : f32[1,16,3]", "r : f32[1,16,4]"},
        "LSTM(x, w, r) {hidden_size=4}"},
       2.0 * 10 * (48 + 64),
       4.0 * (30 + 48 + 64 + 40)},
      {{13, {"x : f32[2,3]"}, "Flatten(x)"}, 0, 0},
      {{13, {"x : f32[2,3]"}, "Transpose(x)"}, 0, 48},
      {{13, {"x : f32[1000,8]", "i : i64[2]"}, "Gather(x, i)"}, 0, 2.0 * 64 + 16},
      {{12, {"a : f32[2,3]", "b : f32[3,4]"}, "Einsum(a, b) {equation=\"ij,jk->ik\"}"},
       2.0 * 24,
       4.0 * (6 + 12 + 8)},
  };
  for (const CostRow& row : rows) {
    Result<Graph> graph = graph_of(row.call);
    ASSERT_TRUE(graph.ok()) << to_string(graph.error());
    const auto descs = shapes_of(*graph);
    ASSERT_TRUE(descs.ok()) << to_string(descs.error());
    std::size_t i = 0;
    for (const ValueId v : graph->outputs(NodeId(0))) graph->set_desc(v, (*descs)[i++]);
    const auto cost = cost_of(*graph, NodeId(0));
    ASSERT_TRUE(cost) << row.call.call;
    EXPECT_EQ(cost->flops, row.flops) << row.call.call;
    EXPECT_EQ(cost->bytes, row.bytes) << row.call.call;
  }
}

}  // namespace
}  // namespace millstream::testing
