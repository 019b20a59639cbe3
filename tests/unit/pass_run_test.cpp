// SPDX-License-Identifier: Apache-2.0
// Stream passes on a graph and an assignment, without libraries.
#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>
#include <thread>

#include <register/register_custom_pass.h>

#include "millstream/graph/text.h"
#include "millstream/pass/pass.h"

namespace millstream {
namespace {

using ge::AscendString;
using ge::ConstGraphPtr;
using ge::GNode;
using ge::StreamPassContext;

constexpr const char* kGraph =
    "graph g\n  input x : f32[2,N]\n  const w : f32[2] = [1, 2]\n"
    "  a = Relu(x)\n  b = Softmax(a) {axis=1} @label(\"s\") @cost(2.5)\n  c, d = Split(a) @after(b)\n  out = Add(c, w)\n  e = Neg(d)\n";

Graph graph_of(const std::string& text) {
  auto graph = parse_graph(text, "test.mst");
  EXPECT_TRUE(graph.ok()) << to_string(graph.error());
  return std::move(graph).value();
}

// All nodes on stream 0, decided by a rule.
StreamAssignment on_one(const Graph& graph) {
  StreamAssignment on;
  on.rules = {"rule"};
  on.reasons = {"why"};
  on.new_stream();
  on.placement = IdVec<NodeId, std::optional<Placement>>(graph.node_count(), Placement{StreamId(0), RuleId(0)});
  return on;
}

struct Passes {
  std::deque<ge::PassThunk> thunks;
  PassOptions options;
  void add(const std::string& name, const ge::CustomAllocateStreamPassFunc& function) {
    thunks.emplace_back(ge::PassRegistrationData(name).CustomAllocateStreamPassFn(function));
    const mst_pass_entry& entry = thunks.back().entry;
    options.passes.push_back({name, "lib.so", name, entry.self, entry.run});
  }
  Result<StreamAssignment> run(const Graph& graph, StreamAssignment on) const { return run_passes(graph, Target{}, std::move(on), options); }
};

GNode find(const ConstGraphPtr& graph, const char* name) {
  for (const GNode& n : graph->GetAllNodes()) {
    AscendString own;
    n.GetName(own);
    if (own == name) return n;
  }
  return {};
}

std::uint32_t stream(const Graph& graph, const StreamAssignment& on, const char* name) { return on.stream_of(*graph.find_node(name))->index; }

bool has(const Error& error, const std::string& text) { return to_string(error).find(text) != std::string::npos; }

TEST(PassRun, OnlyTheNamedNodeMovesToTheOldMaximumPlusOne) {
  const Graph graph = graph_of(kGraph);
  Passes passes;
  passes.add("move", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    EXPECT_EQ(c.GetCurrMaxStreamId(), 0);
    const std::int64_t fresh = c.AllocateNextStreamId();
    EXPECT_EQ(fresh, 1);
    EXPECT_EQ(c.GetCurrMaxStreamId(), 1);
    EXPECT_EQ(c.SetStreamId(find(g, "b"), fresh), ge::GRAPH_SUCCESS);
    EXPECT_EQ(c.GetStreamId(find(g, "b")), 1);
    EXPECT_EQ(c.GetStreamId(find(g, "a")), 0);
    EXPECT_STREQ(c.GetPassName().GetString(), "move");
    return ge::SUCCESS;
  });
  const StreamAssignment before = on_one(graph);
  const auto after = passes.run(graph, before);
  ASSERT_TRUE(after.ok()) << to_string(after.error());
  for (const NodeId n : graph.nodes()) EXPECT_EQ(after->stream_of(n)->index, graph.name(n) == "b" ? 1u : 0u);
  EXPECT_TRUE(after->streams[StreamId(1)].assigned_by_pass);
  EXPECT_FALSE(after->streams[StreamId(0)].assigned_by_pass);
  EXPECT_EQ(after->rules[after->placement[*graph.find_node("b")]->decided_by.index], "pass move");
  EXPECT_EQ(after->reports.back().nodes_moved, 1u);
  EXPECT_TRUE(after->warnings.empty());
}

TEST(PassRun, IdsAreDenseAgainAfterwards) {
  const Graph graph = graph_of(kGraph);
  Passes passes;
  passes.add("waste", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    c.AllocateNextStreamId();
    const std::int64_t used = c.AllocateNextStreamId();
    for (const GNode& n : g->GetDirectNode()) EXPECT_EQ(c.SetStreamId(n, used), ge::GRAPH_SUCCESS);
    return ge::SUCCESS;
  });
  passes.add("second", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    EXPECT_EQ(c.GetStreamId(find(g, "a")), 2);  // it sees what the first decided
    EXPECT_EQ(c.GetCurrMaxStreamId(), 2);
    return ge::SUCCESS;
  });
  const auto after = passes.run(graph, on_one(graph));
  ASSERT_TRUE(after.ok()) << to_string(after.error());
  EXPECT_EQ(after->streams.size(), 1u);
  EXPECT_TRUE(verify(graph, *after).empty());
}

TEST(PassRun, AttachedStreamsStayBehindTheMainOnesAndTakeNoNode) {
  const Graph graph = graph_of(kGraph);
  StreamAssignment on = on_one(graph);
  StreamInfo attached;
  attached.attached = true;
  on.attached.set(*graph.find_node("a"), {on.new_stream(attached)});
  Passes passes;
  passes.add("move", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    EXPECT_EQ(c.SetStreamId(find(g, "b"), 1), ge::GRAPH_FAILED);
    EXPECT_EQ(c.SetStreamId(find(g, "b"), c.AllocateNextStreamId()), ge::GRAPH_SUCCESS);
    return ge::SUCCESS;
  });
  const auto after = passes.run(graph, on);
  ASSERT_TRUE(after.ok()) << to_string(after.error());
  EXPECT_EQ(stream(graph, *after, "b"), 1u);
  EXPECT_EQ(after->attached.get(*graph.find_node("a"))->front().index, 2u);
  EXPECT_TRUE(after->streams[StreamId(2)].attached);
  EXPECT_TRUE(has(after->warnings.front(), "attached stream"));
}

TEST(PassRun, ANodeWithoutAStreamHasMinusOneAndMayGetOne) {
  const Graph graph = graph_of(kGraph);
  StreamAssignment on = on_one(graph);
  on.skips_engines = true;
  on.placement[*graph.find_node("b")].reset();
  Passes passes;
  passes.add("place", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    EXPECT_EQ(c.GetStreamId(find(g, "b")), -1);
    return c.SetStreamId(find(g, "b"), 0);
  });
  const auto after = passes.run(graph, on);
  ASSERT_TRUE(after.ok()) << to_string(after.error());
  EXPECT_EQ(stream(graph, *after, "b"), 0u);
  EXPECT_EQ(after->reports.back().nodes_placed, 1u);
}

TEST(PassRun, AFailureNamesPassLibraryCodeAndWords) {
  const Graph graph = graph_of(kGraph);
  Passes passes;
  bool second = false;
  passes.add("bad", [](const ConstGraphPtr&, StreamPassContext& c) -> ge::Status {
    c.SetErrorMessage("my own words");
    return static_cast<ge::Status>(-2);
  });
  passes.add("later", [&](const ConstGraphPtr&, StreamPassContext&) -> ge::Status {
    second = true;
    return ge::SUCCESS;
  });
  const auto after = passes.run(graph, on_one(graph));
  ASSERT_FALSE(after.ok());
  for (const char* text : {"\"bad\"", "lib.so", "failed with -2", "my own words", "--pass-policy rollback"}) EXPECT_TRUE(has(after.error(), text)) << text;
  EXPECT_FALSE(second);  // the rest do not run
}

TEST(PassRun, AnExceptionIsAFailureWithMinusOne) {
  const Graph graph = graph_of(kGraph);
  for (const bool standard : {true, false}) {
    Passes passes;
    passes.add("throws", [=](const ConstGraphPtr&, StreamPassContext&) -> ge::Status {
      if (standard) throw std::runtime_error("what it said");
      throw 7;
    });
    const auto after = passes.run(graph, on_one(graph));
    ASSERT_FALSE(after.ok());
    EXPECT_TRUE(has(after.error(), "failed with -1"));
    EXPECT_TRUE(has(after.error(), standard ? "what it said" : "no std::exception"));
  }
}

TEST(PassRun, RollbackUndoesThePassAndGoesOn) {
  const Graph graph = graph_of(kGraph);
  for (const bool throws : {true, false}) {
    Passes passes;
    passes.options.policy = PassPolicy::rollback;
    passes.add("half", [=](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
      c.SetStreamId(find(g, "a"), c.AllocateNextStreamId());
      if (throws) throw std::runtime_error("half way");
      return ge::FAILED;
    });
    passes.add("good", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
      EXPECT_EQ(c.GetCurrMaxStreamId(), 0);
      return c.SetStreamId(find(g, "b"), c.AllocateNextStreamId());
    });
    const auto after = passes.run(graph, on_one(graph));
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(stream(graph, *after, "a"), 0u);
    EXPECT_EQ(stream(graph, *after, "b"), 1u);
    ASSERT_EQ(after->warnings.size(), 1u);
    EXPECT_TRUE(has(after->warnings.front(), "is undone"));
  }
}

// Ids and nodes that SetStreamId refuses: the node stays, and the warning names it.
TEST(PassRun, ACallThatIsRefusedChangesNothingAndIsSaid) {
  const Graph graph = graph_of(kGraph);
  struct Case {
    const char* node;
    std::int64_t id;
    const char* said;
  };
  for (const Case& k : {Case{"a", 1, "the largest id is 0"}, Case{"a", -1, "ids count from 0"}, Case{"nobody", 0, "made by GNode()"}}) {
    Passes passes;
    const auto bad = [k](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
      EXPECT_EQ(c.SetStreamId(find(g, k.node), k.id), ge::GRAPH_FAILED);
      return ge::SUCCESS;
    };
    passes.add("bad", bad);
    const StreamAssignment before = on_one(graph);
    const auto after = passes.run(graph, before);
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(after->placement, before.placement);
    ASSERT_EQ(after->warnings.size(), 1u);
    EXPECT_TRUE(has(after->warnings.front(), k.said)) << to_string(after->warnings.front());
    passes.options.policy = PassPolicy::strict;
    const auto strict = passes.run(graph, before);
    ASSERT_FALSE(strict.ok());
    EXPECT_TRUE(has(strict.error(), k.said));
  }
}

TEST(PassRun, NodesOfSubgraphsAreSeenButDoNotMove) {
  const Graph graph = graph_of(
      "graph g\n  input c : bool[]\n  input x : f32[1]\n  r = If(c) {then_branch=body(yes), else_branch=body(no)}\n"
      "body yes\n  outer x : f32[1]\n  inner = Relu(x)\n  output inner\nbody no\n  outer x : f32[1]\n  other = Neg(x)\n  output other\n");
  Passes passes;
  passes.add("deep", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    EXPECT_EQ(g->GetDirectNode().size(), 1u);
    EXPECT_EQ(g->GetAllNodes().size(), 3u);
    std::vector<ge::GraphPtr> graphs;
    EXPECT_EQ(find(g, "r").GetALLSubgraphs(graphs), ge::GRAPH_SUCCESS);
    EXPECT_EQ(graphs.size(), 2u);
    if (graphs.size() == 2) {
      EXPECT_EQ(graphs[0]->GetDirectNode().size(), 1u);
    }
    EXPECT_EQ(c.SetStreamId(find(g, "inner"), 0), ge::GRAPH_FAILED);
    EXPECT_EQ(c.GetStreamId(find(g, "inner")), -1);
    return ge::SUCCESS;
  });
  const auto after = passes.run(graph, on_one(graph));
  ASSERT_TRUE(after.ok());
  EXPECT_TRUE(has(after->warnings.front(), "\"inner\""));
}

TEST(PassRun, TheGraphReadsAsItIs) {
  const Graph graph = graph_of(kGraph);
  Passes passes;
  passes.options.values = {{"ge.a", "1"}, {"ge.a", "2"}};
  passes.add("read", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    EXPECT_TRUE(g->IsValid());
    EXPECT_EQ(g->GetName(), "g");
    std::string order;
    for (const GNode& n : g->GetDirectNode()) {
      AscendString name;
      n.GetName(name);
      order += name.GetString() + std::string(" ");
    }
    EXPECT_EQ(order, "a b c out e ");
    const GNode a = find(g, "a"), b = find(g, "b"), split = find(g, "c"), out = find(g, "out"), e = find(g, "e");
    AscendString text;
    EXPECT_EQ(b.GetType(text), ge::GRAPH_SUCCESS);
    EXPECT_STREQ(text.GetString(), "Softmax");
    EXPECT_EQ(a.GetInputsSize(), 1u);
    EXPECT_EQ(split.GetOutputsSize(), 2u);
    EXPECT_EQ(a.GetInDataNodesAndPortIndexs(0).first, nullptr);  // a graph input
    EXPECT_EQ(a.GetInDataNodesAndPortIndexs(5).first, nullptr);
    const auto from = e.GetInDataNodesAndPortIndexs(0);
    EXPECT_EQ(from.second, 1);
    if (from.first != nullptr) from.first->GetName(text);
    EXPECT_STREQ(text.GetString(), "c");
    EXPECT_EQ(a.GetOutDataNodesAndPortIndexs(0).size(), 2u);
    EXPECT_EQ(split.GetInControlNodes().size(), 1u);
    EXPECT_EQ(b.GetOutControlNodes().size(), 1u);
    EXPECT_TRUE(a.GetInControlNodes().empty());
    std::int64_t axis = 0;
    EXPECT_TRUE(b.HasAttr("axis"));
    EXPECT_EQ(b.GetAttr("axis", axis), ge::GRAPH_SUCCESS);
    EXPECT_EQ(axis, 1);
    bool truth = false;
    EXPECT_EQ(b.GetAttr("axis", truth), ge::GRAPH_SUCCESS);
    EXPECT_EQ(b.GetAttr("axis", text), ge::GRAPH_FAILED);
    EXPECT_EQ(b.GetAttr("_stream_label", text), ge::GRAPH_SUCCESS);
    EXPECT_STREQ(text.GetString(), "s");
    float us = 0;
    EXPECT_EQ(b.GetAttr("_cost_us", us), ge::GRAPH_SUCCESS);
    EXPECT_EQ(us, 2.5f);
    EXPECT_FALSE(a.HasAttr("_cost_us"));
    EXPECT_EQ(b.SetAttr("axis", axis), ge::GRAPH_FAILED);
    ge::TensorDesc desc;
    EXPECT_EQ(a.GetInputDesc(0, desc), ge::GRAPH_SUCCESS);
    EXPECT_EQ(desc.GetShape().GetDims(), (std::vector<std::int64_t>{2, -1}));
    EXPECT_EQ(desc.GetDataType(), ge::DT_FLOAT);
    ge::Tensor tensor;
    EXPECT_EQ(out.GetInputConstData(1, tensor), ge::GRAPH_SUCCESS);
    EXPECT_EQ(tensor.GetSize(), 8u);
    EXPECT_EQ(out.GetInputConstData(0, tensor), ge::GRAPH_FAILED);
    std::int32_t index = -1;
    EXPECT_EQ(split.GetOutputIndexByName("d", index), ge::GRAPH_SUCCESS);
    EXPECT_EQ(index, 1);
    EXPECT_EQ(c.GetOptionValue("ge.a", text), ge::GRAPH_SUCCESS);
    EXPECT_STREQ(text.GetString(), "2");
    EXPECT_EQ(c.GetOptionValue("ge.b", text), ge::GRAPH_FAILED);
    return ge::SUCCESS;
  });
  const auto after = passes.run(graph, on_one(graph));
  ASSERT_TRUE(after.ok()) << to_string(after.error());
}

TEST(PassRun, HandlesEndWithThePass) {
  const Graph graph = graph_of(kGraph);
  const mst_host_api* api = nullptr;
  struct Kept {
    const mst_host_api* api = nullptr;
    const mst_graph* graph = nullptr;
    mst_stream_ctx* context = nullptr;
    const mst_node* node = nullptr;
  } kept;
  PassOptions options;
  options.passes.push_back({"keep", "", "keep", &kept,
                            [](void* self, const mst_host_api* host, const mst_graph* g, mst_stream_ctx* c) -> std::int32_t {
                              *static_cast<Kept*>(self) = {host, g, c, host->graph_node(g, MST_DIRECT_NODES, 0)};
                              return 0;
                            }});
  ASSERT_TRUE(run_passes(graph, Target{}, on_one(graph), options).ok());
  api = kept.api;
  mst_str text{};
  EXPECT_NE(kept.node, nullptr);
  EXPECT_EQ(api->node_name(kept.node, &text), -1);
  EXPECT_EQ(api->graph_node_count(kept.graph, MST_DIRECT_NODES), 0u);
  EXPECT_EQ(api->ctx_set_stream(kept.context, kept.node, 0), -1);
  EXPECT_EQ(api->ctx_next_stream(kept.context), -1);
  EXPECT_EQ(api->ctx_max_stream(kept.context), -1);
  EXPECT_EQ(api->node_name(nullptr, &text), -1);
}

TEST(PassRun, ANodeOfAnotherRunIsRefused) {
  const Graph graph = graph_of(kGraph);
  GNode foreign;
  Passes outer;
  outer.add("outer", [&](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    foreign = find(g, "a");
    Passes inner;
    inner.add("inner", [&](const ConstGraphPtr&, StreamPassContext& own) -> ge::Status {
      EXPECT_EQ(own.SetStreamId(foreign, 0), ge::GRAPH_FAILED);
      EXPECT_EQ(own.GetStreamId(foreign), -1);
      return ge::SUCCESS;
    });
    EXPECT_TRUE(inner.run(graph, on_one(graph)).ok());
    return c.SetStreamId(foreign, 0);
  });
  ASSERT_TRUE(outer.run(graph, on_one(graph)).ok());
}

TEST(PassRun, ADynamicGraphIsGivenBeforeEachBodyOfKnownShapes) {
  const Graph graph = graph_of(
      "graph root shapes=dynamic\n  input x : f32[1]\n  a = Relu(x)\n  call = PartitionedCall(a)\n  in1 = Relu(a) @scope(\"known\")\n"
      "  scope known of call\n");
  Passes passes;
  std::string seen;
  passes.add("see", [&](const ConstGraphPtr& g, StreamPassContext&) -> ge::Status {
    seen += g->GetName() + ":" + std::to_string(g->GetDirectNode().size()) + " ";
    return ge::SUCCESS;
  });
  std::string moments;
  passes.options.observe = [&](const PassMoment& m) { moments += std::string(m.after ? "after " : "before ") + std::to_string(m.scope.index) + " "; };
  ASSERT_TRUE(passes.run(graph, on_one(graph)).ok());
  EXPECT_EQ(seen, "root:2 known:1 ");
  EXPECT_EQ(moments, "before 0 after 0 before 1 after 1 ");
}

TEST(PassRun, AnEngineThatLosesAStreamOfItsOwnIsWarnedOfAndThePassStands) {
  const Graph graph = graph_of("graph g\n  input x : f32[4]\n  a = Relu(x)\n  sum = HcomAllReduce(a)\n  b = Neg(x)\n");
  const auto target = load_target("npu");
  ASSERT_TRUE(target.ok());
  StreamAssignment before = on_one(graph);
  before.placement[*graph.find_node("sum")]->stream = before.new_stream();
  const auto warnings = [&](const char* node, std::int64_t stream, StreamAssignment on) {
    Passes passes;
    passes.options.policy = PassPolicy::strict;
    passes.add("mix", [&](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
      while (c.GetCurrMaxStreamId() < stream) c.AllocateNextStreamId();
      return c.SetStreamId(find(g, node), stream);
    });
    const auto after = run_passes(graph, *target, std::move(on), passes.options);
    EXPECT_TRUE(after.ok()) << to_string(after.error());
    EXPECT_EQ(after->stream_of(*graph.find_node(node)), after->placement[*graph.find_node(node)]->stream);
    std::string out;
    for (const Error& w : after->warnings) out += to_string(w, "warning") + "\n";
    return out;
  };
  EXPECT_EQ(warnings("b", 1, before),
            "warning: engine DNN_HCCL works beside the others and had streams of its own; now \"sum\" shares stream 1 with \"b\" of engine AIcoreEngine [E45 stream pass]\n"
            "  note: stream pass \"mix\" of \"lib.so\" did it on graph \"g\"\n"
            "  help: the plan is right, but on that stream one waits for the other; a stream of its own for the engine avoids it\n");
  EXPECT_EQ(warnings("b", 2, before), "");
  EXPECT_EQ(warnings("sum", 2, before), "");
  EXPECT_EQ(warnings("b", 1, on_one(graph)), "");  // it never had a stream of its own
}

TEST(PassRun, CallsMayComeFromSeveralThreads) {
  const Graph graph = graph_of(kGraph);
  Passes passes;
  passes.add("threads", [](const ConstGraphPtr& g, StreamPassContext& c) -> ge::Status {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) c.SetStreamId(find(g, "b"), c.AllocateNextStreamId());
      });
    }
    for (std::thread& t : threads) t.join();
    return c.GetCurrMaxStreamId() == 200 ? ge::SUCCESS : ge::FAILED;
  });
  ASSERT_TRUE(passes.run(graph, on_one(graph)).ok());
}

TEST(PassContext, AloneItCountsAndRefusesWhatItCannotKnow) {
  StreamPassContext context(3);
  EXPECT_EQ(context.GetCurrMaxStreamId(), 3);
  EXPECT_EQ(context.AllocateNextStreamId(), 4);
  EXPECT_EQ(context.GetCurrMaxStreamId(), 4);
  EXPECT_EQ(context.SetStreamId(GNode(), 4), ge::GRAPH_FAILED);
  EXPECT_EQ(context.GetStreamId(GNode()), -1);
  AscendString value;
  EXPECT_EQ(context.GetOptionValue("ge.a", value), ge::GRAPH_FAILED);
}

}  // namespace
}  // namespace millstream
