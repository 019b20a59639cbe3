// SPDX-License-Identifier: Apache-2.0
// What is refused, and how: hostile, broken and unsupported models.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/onnx_build.h"

namespace millstream::test {
namespace {

namespace fs = std::filesystem;

onnx::ModelProto small_model() {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2", "N"});
  floats(g->add_initializer(), "w", {2, 1}, {1, 2});
  node(g, "Add", {"x", "w"}, {"h"}, "add");
  set_int(node(g, "Softmax", {"h"}, {"y"}, "soft"), "axis", 1);
  output(g, "y");
  return m;
}

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("millstream_import_" + std::to_string(::getpid()));
    fs::create_directories(root_ / "model" / "data");
    std::ofstream(root_ / "secret.bin") << "12345678";
    std::ofstream(root_ / "model" / "data" / "w.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(values_), sizeof values_);
  }
  void TearDown() override { fs::remove_all(root_); }
  onnx::ModelProto external(const std::string& location, const std::string& offset = "", const std::string& length = "") {
    auto m = model();
    auto* g = m.mutable_graph();
    input(g, "x", {"2"});
    auto* t = g->add_initializer();
    t->set_name("w");
    t->set_data_type(onnx::TensorProto::FLOAT);
    t->add_dims(2);
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    const auto add = [&](const char* key, const std::string& value) {
      auto* e = t->add_external_data();
      e->set_key(key);
      e->set_value(value);
    };
    add("location", location);
    if (!offset.empty()) add("offset", offset);
    if (!length.empty()) add("length", length);
    node(g, "Add", {"x", "w"}, {"y"});
    output(g, "y");
    return m;
  }
  std::string told(const onnx::ModelProto& m) { return failure(m, {}, (root_ / "model").string()); }
  fs::path root_;
  const float values_[4] = {1, 2, 3, 4};
};

TEST_F(Folder, ExternalDataBelowTheModelIsRead) {
  const auto g = imported(external("data/w.bin", "8", "8"), {}, (root_ / "model").string());
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  EXPECT_EQ(g->constant(*g->find_value("w"))->as<float>()[0], 3.0f);
  fs::create_symlink("data/w.bin", root_ / "model" / "inside.bin");
  EXPECT_EQ(told(external("inside.bin")), "no error");
}

TEST_F(Folder, ExternalDataThatLeavesTheFolderIsRefused) {
  EXPECT_TRUE(has(told(external("../secret.bin")), "leaves the folder")) << told(external("../secret.bin"));
  EXPECT_TRUE(has(told(external("data/../../secret.bin")), "leaves the folder"));
  EXPECT_TRUE(has(told(external((root_ / "secret.bin").string())), "absolute"));
  fs::create_symlink(root_ / "secret.bin", root_ / "model" / "link.bin");
  EXPECT_TRUE(has(told(external("link.bin")), "symbolic link leads out"));
  fs::create_directory_symlink(root_, root_ / "model" / "up");
  EXPECT_TRUE(has(told(external("up/secret.bin")), "symbolic link leads out"));
  fs::create_directories(root_ / "model2");
  std::ofstream(root_ / "model2" / "s.bin") << "12345678";
  fs::create_symlink("../model2/s.bin", root_ / "model" / "sibling.bin");  // "model" is a prefix of "model2"
  EXPECT_TRUE(has(told(external("sibling.bin")), "symbolic link leads out"));
  EXPECT_TRUE(has(told(external("data")), "not a regular file"));
  EXPECT_TRUE(has(failure(external("data/w.bin")), "not read from a folder"));
}

TEST_F(Folder, ExternalDataOutOfBoundsIsRefused) {
  EXPECT_TRUE(has(told(external("data/w.bin", "9")), "ends at byte 16")) << told(external("data/w.bin", "9"));
  EXPECT_TRUE(has(told(external("data/w.bin", "18446744073709551615")), "ends at byte 16"));
  EXPECT_TRUE(has(told(external("data/w.bin", "0", "4")), "4 bytes long, its shape needs 8"));
  EXPECT_TRUE(has(told(external("data/w.bin", "-1")), "no number"));
  EXPECT_TRUE(has(told(external("data/none.bin")), "cannot read"));
  EXPECT_TRUE(has(told(external("")), "no location"));
}

TEST_F(Folder, ADumpIsNoModelAndTheErrorNamesItsReader) {
  const auto error = [&](const char* name, const char* text) {
    std::ofstream(root_ / name) << text;
    const auto graph = import_graph((root_ / name).string(), {});
    return graph.ok() ? std::string("read") : to_string(graph.error());
  };
  for (const char* text : {"ir_version: 6\n", "# a dump\nversion: 1\n", "graph {\n}\n", "op {\n}\n"}) {
    const std::string said = error("d.pbtxt", text);
    EXPECT_NE(said.find("is one: import_graph reads models"), std::string::npos) << text << said;
    EXPECT_NE(said.find("read_dump (millstream/dump/dump.h)"), std::string::npos) << text << said;
  }
  EXPECT_NE(error("d.txt", "Dear reader,\n").find("has the name of a graph dump, and is none"), std::string::npos);
  EXPECT_NE(error("d.txt", "{\"a\": 1}").find("has the name of a graph dump, and is none"), std::string::npos);
  EXPECT_EQ(error("ours.txt", "graph\n  input x : f32[2]\n  a = Relu(x)\n  output a\n"), "read");
}

TEST(ImportErrors, EveryPrefixOfAModelIsAnErrorOrAModel) {
  const std::string bytes = small_model().SerializeAsString();
  std::size_t errors = 0;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto g = import_onnx(std::string_view(bytes).substr(0, n), "t", "", {});
    if (g.ok()) continue;
    ++errors;
    EXPECT_FALSE(g.error().message.empty());
  }
  EXPECT_GT(errors, bytes.size() / 2);
}

TEST(ImportErrors, EveryFlippedByteIsAnErrorOrAModel) {
  const std::string bytes = small_model().SerializeAsString();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      const auto g = import_onnx(changed, "t", "", {});
      if (g.ok()) {
        EXPECT_TRUE(verify(*g).empty());
      }
    }
  }
}

TEST(ImportErrors, WhatIsNoOnnxModelSaysSo) {
  EXPECT_TRUE(has(to_string(import_onnx("", "t", "", {}).error()), "is empty"));
  EXPECT_TRUE(has(to_string(import_onnx("\x89PNG\r\n\x1a\n0000", "t", "", {}).error()), "no ONNX model"));
  EXPECT_EQ(import_onnx("hello, world", "t", "", {}).error().code, ErrorCode::bad_model);
  EXPECT_EQ(import_graph("/nowhere/none.onnx", {}).error().code, ErrorCode::io);
  EXPECT_EQ(import_graph("/", {}).error().code, ErrorCode::io);
  EXPECT_EQ(import_graph("/dev/zero", {}).error().code, ErrorCode::io);
}

TEST(ImportErrors, OneErrorListsEveryMissingOperator) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  node(g, "Foo", {"x"}, {"a"});
  node(g, "Foo", {"a"}, {"b"});
  node(g, "Gelu", {"b"}, {"c"});  // since opset 20
  node(g, "Bar", {"c"}, {"y"})->set_domain("com.example");
  auto* second = m.add_opset_import();
  second->set_domain("com.example");
  second->set_version(3);
  output(g, "y");
  EXPECT_EQ(failure(m),
            "error: model \"test.onnx\" needs 3 operators that millstream lacks (4 nodes) [E01 unsupported operator]\n"
            "  note: Foo (opset 17, 2 nodes): not an operator of millstream\n"
            "  note: Gelu (opset 17, 1 node): its meaning is known for opsets 20 to 23 only\n"
            "  note: com.example::Bar (opset 3, 1 node): not an operator of millstream\n"
            "  help: docs/operators.md lists what there is; export with other operators, or decompose these");
}

TEST(ImportErrors, VersionsSayHaveAndAllowed) {
  auto m = small_model();
  m.set_ir_version(14);
  EXPECT_TRUE(has(failure(m), "has IR version 14, allowed are 3 to 13"));
  m.set_ir_version(2);
  EXPECT_TRUE(has(failure(m), "has IR version 2, allowed are 3 to 13"));
  for (const int opset : {5, 24}) {
    auto old = small_model();
    old.mutable_opset_import(0)->set_version(opset);
    EXPECT_TRUE(has(failure(old), "Add (opset " + std::to_string(opset))) << failure(old);
    EXPECT_TRUE(has(failure(old), "to 23 only")) << failure(old);
  }
  for (int ir = 3; ir <= 13; ++ir) {
    auto fine = small_model();
    fine.set_ir_version(ir);
    EXPECT_EQ(failure(fine), "no error");
  }
  for (int opset = 7; opset <= 23; ++opset) {
    auto fine = small_model();
    fine.mutable_opset_import(0)->set_version(opset);
    EXPECT_EQ(failure(fine), "no error") << opset;
  }
}

TEST(ImportErrors, NamesAndOrderAreChecked) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2"});
  node(g, "Relu", {"b"}, {"a"}, "early");
  node(g, "Relu", {"x"}, {"b"}, "late");
  output(g, "a");
  EXPECT_TRUE(has(failure(m), "value \"b\" is read before any node produces it")) << failure(m);
  EXPECT_TRUE(has(failure(m), "Relu \"early\""));

  auto twice = small_model();
  node(twice.mutable_graph(), "Relu", {"x"}, {"h"});
  EXPECT_TRUE(has(failure(twice), "value \"h\" is defined twice")) << failure(twice);

  auto none = small_model();
  output(none.mutable_graph(), "ghost");
  EXPECT_TRUE(has(failure(none), "no node produces output \"ghost\"")) << failure(none);

  auto shadow = small_model();
  auto* n = node(shadow.mutable_graph(), "If", {"x"}, {"z"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto* b = attribute(n, branch, onnx::AttributeProto::GRAPH)->mutable_g();
    node(b, "Neg", {"h"}, {"q"});
    node(b, "Neg", {"q"}, {"h"});
    output(b, "h");
  }
  EXPECT_TRUE(has(failure(shadow), "defined twice")) << failure(shadow);
}

TEST(ImportErrors, TypesThatAreNoTensorsOfNumbersAreRefused) {
  auto m = small_model();
  auto* v = m.mutable_graph()->add_input();
  v->set_name("list");
  v->mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  EXPECT_TRUE(has(failure(m), "input \"list\" is a sequence")) << failure(m);
  auto s = small_model();
  input(s.mutable_graph(), "words", {"1"}, onnx::TensorProto::STRING);
  EXPECT_TRUE(has(failure(s), "input \"words\" is a string tensor")) << failure(s);
  EXPECT_EQ(imported(s).error().code, ErrorCode::unsupported_operator);
  auto sparse = small_model();
  sparse.mutable_graph()->add_sparse_initializer();
  EXPECT_TRUE(has(failure(sparse), "sparse initialiser")) << failure(sparse);
}

TEST(ImportErrors, ATensorsShapeMustFitItsData) {
  const auto with = [](std::vector<std::int64_t> dims) {
    auto m = small_model();
    auto* t = m.mutable_graph()->mutable_initializer(0);
    t->clear_dims();
    for (const auto d : dims) t->add_dims(d);
    return failure(m);
  };
  EXPECT_TRUE(has(with({3}), "initialiser \"w\": holds 8 bytes of data, its shape needs 12")) << with({3});
  EXPECT_TRUE(has(with({-2}), "dimension -2 is negative"));
  EXPECT_TRUE(has(with({std::int64_t{1} << 62, 4}), "not representable"));
  EXPECT_TRUE(has(with({std::int64_t{1} << 31, std::int64_t{1} << 31, 0}), "needs 0"));
  EXPECT_TRUE(has(with({std::int64_t{1} << 40}), "its shape needs 4398046511104"));
  EXPECT_TRUE(has(with(std::vector<std::int64_t>(65, 1)), "malformed"));
  auto claimed = small_model();
  auto* t = claimed.mutable_graph()->mutable_initializer(0);
  t->clear_raw_data();
  t->set_dims(0, std::int64_t{1} << 40);
  EXPECT_TRUE(has(failure(claimed), "holds 0 data entries")) << failure(claimed);
}

TEST(ImportErrors, AHugeTensorIsRefusedByNameBeforeItIsMade) {
  auto m = small_model();
  ImportOptions options;
  options.max_memory = 1000;
  options.dims = {{"N", 200}};
  EXPECT_TRUE(has(failure(m, options), "input \"x\": a tensor f32[2,200] takes 1600 bytes, allowed are 1000")) << failure(m, options);
  EXPECT_EQ(imported(m, options).error().code, ErrorCode::memory_limit);
  options.max_memory = 4;
  EXPECT_TRUE(has(failure(m, options), "initialiser \"w\": takes 8 bytes, allowed are 4")) << failure(m, options);

  auto grown = model();
  auto* g = grown.mutable_graph();
  input(g, "x", {"4"});
  ints(g->add_initializer(), "shape", {3}, {100000, 100000, 4});
  node(g, "Expand", {"x", "shape"}, {"y"}, "blow");
  output(g, "y");
  options = {};
  options.max_memory = 1u << 20;
  EXPECT_TRUE(has(failure(grown, options), "Expand \"blow\": a tensor f32[100000,100000,4] takes 160000000000 bytes")) << failure(grown, options);
  g->mutable_initializer(0)->set_int64_data(0, std::int64_t{1} << 60);
  EXPECT_TRUE(has(failure(grown), "no representable size")) << failure(grown);
}

TEST(ImportErrors, NestingHasALimit) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {}, onnx::TensorProto::BOOL);
  onnx::GraphProto leaf;
  node(&leaf, "Not", {"x"}, {"v"});
  output(&leaf, "v");
  for (int depth = 0; depth < 60; ++depth) {
    onnx::GraphProto next;
    auto* n = node(&next, "If", {"x"}, {"v"});
    *attribute(n, "then_branch", onnx::AttributeProto::GRAPH)->mutable_g() = leaf;
    auto* other = attribute(n, "else_branch", onnx::AttributeProto::GRAPH)->mutable_g();
    node(other, "Not", {"x"}, {"v"});
    output(other, "v");
    output(&next, "v");
    leaf = std::move(next);
  }
  auto* n = node(g, "If", {"x"}, {"y"});
  *attribute(n, "then_branch", onnx::AttributeProto::GRAPH)->mutable_g() = leaf;
  *attribute(n, "else_branch", onnx::AttributeProto::GRAPH)->mutable_g() = leaf.node(0).attribute(1).g();
  output(g, "y");
  EXPECT_TRUE(has(failure(m), "nested more than 32 deep")) << failure(m);
}

TEST(ImportErrors, NestedLoopsThatNeverSettleComeToAnEnd) {
  // Each level's first value grows and the others take over from their neighbours, so that its shapes
  // change several times; each attempt infers the levels below anew: 5 to the power of the depth.
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"2", "3"});
  onnx::GraphProto inner;
  const auto carry = [](onnx::GraphProto* body) {
    describe(body->add_input(), "i", onnx::TensorProto::INT64, {});
    describe(body->add_input(), "go", onnx::TensorProto::BOOL, {});
  };
  for (int depth = 0; depth < 24; ++depth) {
    onnx::GraphProto body;
    carry(&body);
    const std::string d = std::to_string(depth);
    for (int k = 0; k < 6; ++k) body.add_input()->set_name("a" + d + "_" + std::to_string(k));
    set_int(node(&body, "Concat", {"a" + d + "_0", "x"}, {"grown" + d}), "axis", 0);
    std::string last = "grown" + d;
    if (depth > 0) {
      auto* n = node(&body, "Loop", {"", "go", "x", "x", "x", "x", "x", "x"}, {"l0", "l1", "l2", "l3", "l4", "l5"});
      *attribute(n, "body", onnx::AttributeProto::GRAPH)->mutable_g() = inner;
      for (int i = 0; i < 6; ++i) n->set_output(i, "l" + d + "_" + std::to_string(i));
    }
    output(&body, "go");
    output(&body, last);
    for (int k = 0; k < 5; ++k) output(&body, "a" + d + "_" + std::to_string(k));
    // The condition's name repeats in every level: each body must have its own.
    for (auto& in : *body.mutable_input()) {
      if (in.name() == "go" || in.name() == "i") in.set_name(in.name() + d);
    }
    for (auto& out : *body.mutable_output()) {
      if (out.name() == "go") out.set_name("go" + d);
    }
    for (auto& n : *body.mutable_node()) {
      for (auto& in : *n.mutable_input()) {
        if (in == "go") in = "go" + d;
      }
    }
    inner = std::move(body);
  }
  auto* n = node(g, "Loop", {"", "", "x", "x", "x", "x", "x", "x"}, {"o0", "o1", "o2", "o3", "o4", "o5"});
  *attribute(n, "body", onnx::AttributeProto::GRAPH)->mutable_g() = inner;
  output(g, "o0");
  const std::string told = failure(m);
  EXPECT_TRUE(has(told, "do not settle")) << told;
}

TEST(ImportErrors, ABranchThatCannotRunDoesNotRefuseTheModel) {
  auto m = model();
  auto* g = m.mutable_graph();
  input(g, "x", {"5"});
  input(g, "c", {}, onnx::TensorProto::BOOL);
  floats(g->add_initializer(), "three", {3}, {1, 2, 3});
  auto* n = node(g, "If", {"c"}, {"y"}, "choose");
  auto* yes = attribute(n, "then_branch", onnx::AttributeProto::GRAPH)->mutable_g();
  node(yes, "Add", {"x", "three"}, {"t"});
  output(yes, "t");
  auto* no = attribute(n, "else_branch", onnx::AttributeProto::GRAPH)->mutable_g();
  node(no, "Neg", {"x"}, {"e"});
  output(no, "e");
  output(g, "y");
  EXPECT_EQ(failure(m), "no error");
  no->mutable_node(0)->set_op_type("Add");
  no->mutable_node(0)->add_input("three");
  EXPECT_EQ(imported(m).error().code, ErrorCode::shape);
}

}  // namespace
}  // namespace millstream::test
