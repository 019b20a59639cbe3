// SPDX-License-Identifier: Apache-2.0
// What a user writes, with names as they are and with ge:: before them.
#include <iostream>

#include <graph/ascend_string.h>
#include <graph/gnode.h>
#include <graph/graph.h>
#include <register/register_custom_pass.h>

#include "register/register_custom_pass.h"
#include "register/register_pass.h"
#include "register_custom_pass.h"

namespace qualified {
ge::Status Move(const ge::ConstGraphPtr& graph, ge::StreamPassContext& context) {
  for (const ge::GNode& node : graph->GetDirectNode()) {
    if (context.SetStreamId(node, context.GetCurrMaxStreamId()) != ge::GRAPH_SUCCESS) return ge::FAILED;
  }
  return ge::SUCCESS;
}
REGISTER_CUSTOM_PASS("qualified").CustomAllocateStreamPassFn(Move);
}  // namespace qualified

using namespace ge;

graphStatus MoveUnqualified(const ConstGraphPtr& graph, StreamPassContext& context) {
  for (const auto& node : graph->GetDirectNode()) {
    AscendString name, type;
    node.GetName(name);
    node.GetType(type);
    std::int64_t number = 0;
    std::int32_t small = 0;
    std::uint32_t natural = 0;
    float real = 0;
    bool truth = false;
    AscendString text;
    Tensor tensor;
    DataType data_type;
    std::vector<std::int64_t> numbers;
    std::vector<std::int32_t> smalls;
    std::vector<std::uint32_t> naturals;
    std::vector<float> reals;
    std::vector<bool> truths;
    std::vector<AscendString> texts;
    std::vector<Tensor> tensors;
    std::vector<DataType> types;
    std::vector<std::vector<std::int64_t>> lists;
    OpBytes bytes;
    AttrValue any;
    node.GetAttr("a", number);
    node.GetAttr("a", small);
    node.GetAttr("a", natural);
    node.GetAttr("a", real);
    node.GetAttr("a", truth);
    node.GetAttr("a", text);
    node.GetAttr("a", tensor);
    node.GetAttr("a", data_type);
    node.GetAttr("a", numbers);
    node.GetAttr("a", smalls);
    node.GetAttr("a", naturals);
    node.GetAttr("a", reals);
    node.GetAttr("a", truths);
    node.GetAttr("a", texts);
    node.GetAttr("a", tensors);
    node.GetAttr("a", types);
    node.GetAttr("a", lists);
    node.GetAttr("a", bytes);
    node.GetAttr("a", any);
    if (node.SetAttr("a", number) == GRAPH_SUCCESS) return GRAPH_FAILED;
    TensorDesc desc;
    if (node.GetInputsSize() > 0 && node.GetInputDesc(0, desc) == GRAPH_SUCCESS) std::cout << desc.GetShape().GetShapeSize();
    const auto from = node.GetInDataNodesAndPortIndexs(0);
    if (from.first != nullptr) from.first->GetName(name);
    for (const auto& reader : node.GetOutDataNodesAndPortIndexs(0)) reader.first->GetName(name);
    for (const GNodePtr& other : node.GetInControlNodes()) other->GetName(name);
    for (const GNodePtr& other : node.GetOutControlNodes()) other->GetName(name);
    std::vector<GraphPtr> graphs;
    node.GetALLSubgraphs(graphs);
  }
  AscendString value;
  if (context.GetOptionValue("ge.enableSingleStream", value) != GRAPH_SUCCESS) context.SetErrorMessage("none");
  std::cout << context.GetPassName() << graph->GetName() << graph->IsValid() << graph->GetAllNodes().size() << value.Find("e");
  return GRAPH_SUCCESS;
}
REGISTER_CUSTOM_PASS("unqualified").CustomAllocateStreamPassFn(MoveUnqualified);
REGISTER_CUSTOM_PASS("at a stage").Stage(CustomPassStage::kAfterAssignLogicStream).CustomAllocateStreamPassFn(MoveUnqualified);

// A user's own test of a pass makes a context.
std::int64_t alone() {
  StreamPassContext context(3);
  GNode node;
  context.SetStreamId(node, context.AllocateNextStreamId());
  return context.GetStreamId(node) + context.GetCurrMaxStreamId();
}
