// SPDX-License-Identifier: Apache-2.0
// Node types of compiled-graph dumps: those that hold or name data and emit no task, those of control flow and
// those between devices. Their descs stand in the dump; of nodes with nested graphs inference takes them from these.
#include "millstream/ops/cost_rules.h"
#include "millstream/ops/shape_rules.h"
#include "millstream/ops/tables.h"

namespace millstream {
namespace {

constexpr int kVariadic = OpSchema::kVariadic;

Descs as_declared(const ShapeContext& c) { return std::vector<TensorDesc>(c.output_count); }

constexpr OpSchema row(std::string_view type) {
  return {type, "millstream", 1, 23, 0, kVariadic, as_declared, no_cost, false, /*no_task=*/true};
}

constexpr OpSchema task(std::string_view type, bool nested = false) {
  return {type, "millstream", 1, 23, 0, kVariadic, as_declared, no_cost, false, false, /*data_dependent=*/nested};
}

// Constant, the remaining such type, is ONNX's operator too: its row is in generator.cpp.
constexpr OpSchema kTable[] = {
    row("AippData"),
    row("Const"),
    row("Data"),
    row("FileConstant"),
    row("NetOutput"),
    row("Variable"),
    task("Case", true),
    task("For", true),
    task("PartitionedCall", true),
    task("While", true),
    task("LabelGoto"),
    task("LabelGotoEx"),
    task("LabelSet"),
    task("LabelSwitch"),
    task("LabelSwitchByIndex"),
    task("StreamActive"),
    task("StreamMerge"),
    task("StreamSwitch"),
    task("StreamSwitchN"),
    task("CollectiveWait"),
    task("HcomAllGather"),
    task("HcomAllReduce"),
    task("HcomAllToAllV"),
    task("HcomBatchSendRecv"),
    task("HcomBroadcast"),
    task("HcomReceive"),
    task("HcomReduce"),
    task("HcomReduceScatter"),
    task("HcomSend"),
};

}  // namespace

std::span<const OpSchema> table_dumps() { return kTable; }

}  // namespace millstream
