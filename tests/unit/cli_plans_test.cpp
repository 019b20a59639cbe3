// SPDX-License-Identifier: Apache-2.0
// Plans of every kind of graph are written, read again and found sound.
#include "tests/cli_fixture.h"

namespace millstream {
namespace {

class CliPlans : public Cli {
 protected:
  // Compiles MODEL to a plan, and has every command that loads plans read it.
  void goes_round(const std::string& model, const std::string& options, const std::string& shows) {
    SCOPED_TRACE(model + " " + options + "\n" + text_of(model));
    ASSERT_EQ(run("compile " + model + " " + options + " -o p.plan"), 0) << err();
    EXPECT_TRUE(out_has(shows)) << out();
    EXPECT_EQ(run("check p.plan"), 0) << err() << out();
    EXPECT_EQ(run("explain p.plan"), 0) << err();
    EXPECT_EQ(run("diff p.plan p.plan"), 0) << err();
    EXPECT_EQ(run("compile p.plan " + options + " -o q.plan"), 0) << err();
    EXPECT_EQ(text_of("q.plan"), text_of("p.plan"));
  }
  void put_graph(const std::string& name, const std::string& nodes) { put(name, "graph g\n  input x : f32[4]\n" + nodes); }
};

constexpr const char* kNpu = "--target npu --strategy ge";

TEST_F(CliPlans, OfAttachedStreams) {
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a) @attached(1, \"k\")\n  c = Exp(b) @label(\"s\") @attached(1, \"k\")\n  d = Add(b, c)\n  output d\n");
  goes_round("m.mst", kNpu, "+b");
}

TEST_F(CliPlans, OfStreamsThatAreSplit) {
  put("small.toml", "name = \"small\"\n[limits]\ntasks_per_stream = 9\n[tasks]\ndefault = 3\n[[engine]]\nname = \"E\"\nop_types = [\"*\"]\n");
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a)\n  c = Exp(b)\n  d = Exp(c)\n  e = Exp(d)\n  f = Add(e, a)\n  output f\n");
  goes_round("m.mst", "--target small.toml --strategy ge", "stream 1 of 0");
}

TEST_F(CliPlans, OfLabels) {
  put_graph("m.mst", "  a = Relu(x)\n  b = Exp(a) @label(\"s\")\n  c = Exp(a) @user_label(\"u\")\n  d = Add(b, c)\n  output d\n");
  goes_round("m.mst", kNpu, "user_stream_label: u");
}

TEST_F(CliPlans, OfControlFlow) {
  put("m.mst",
      "graph g\n  input c : bool[]\n  input x : f32[4]\n  a = Relu(x)\n  y = If(c) {then_branch=body(yes), else_branch=body(no)}\n"
      "  z = Exp(y)\n  output z\nbody yes\n  outer a\n  q = Exp(a)\n  output q\nbody no\n  outer a\n  q = Abs(a)\n  output q\n");
  goes_round("m.mst", kNpu, "placed");
}

TEST_F(CliPlans, OfParallelGroups) {
  put_graph("m.mst", "  a = Relu(x) @parallel_group(\"1\")\n  b = Exp(x)\n  c = Abs(x) @parallel_group(\"1\")\n  d = Add(b, c)\n  e = Add(a, d)\n  output e\n");
  goes_round("m.mst", kNpu, "parallel-group");
}

TEST_F(CliPlans, OfNodesThatNeedNoStream) {
  put("m.mst", "graph g\n  d = Data()\n  k = Const()\n  r = Reshape(d, k)\n  a = Relu(r)\n  output a\n");
  goes_round("m.mst", kNpu, "skipped-engine");
}

}  // namespace
}  // namespace millstream
