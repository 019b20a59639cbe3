// SPDX-License-Identifier: Apache-2.0
// Tensors in files and in models: every element type and every way to store it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/unit/onnx_build.h"

namespace millstream::test {
namespace {

namespace fs = std::filesystem;

class TensorFile : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("millstream_tensor_" + std::to_string(::getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(at(name), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return at(name);
  }
  std::string told(const std::string& path) const {
    const auto t = read_tensor(path);
    return t.ok() ? "no error" : to_string(t.error());
  }
  static std::string npy(const std::string& header, const std::string& data, char version = 1) {
    std::string out = "\x93NUMPY";
    out += version;
    out += '\0';
    out += static_cast<char>(header.size() & 0xff);
    out += static_cast<char>(header.size() >> 8);
    if (version > 1) out += std::string(2, '\0');
    return out + header + data;
  }
  fs::path root_;
};

TEST_F(TensorFile, WrittenFilesReadBackTheSame) {
  for (int code = 1; code <= 26; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (dtype == DType::string) continue;
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {3}, {2, 3}, {0, 4}}) {
      Tensor t(dtype, shape);
      for (std::size_t i = 0; i < t.byte_size(); ++i) t.mutable_bytes()[i] = static_cast<std::byte>(dtype == DType::boolean ? i & 1 : i * 7 + 1);
      ASSERT_TRUE(write_tensor(at("t.pb"), t).ok());
      auto back = read_tensor(at("t.pb"));
      ASSERT_TRUE(back.ok()) << dtype_name(dtype) << to_string(back.error());
      EXPECT_EQ(*back, t);
      const auto written = write_tensor(at("t.npy"), t);
      const bool known = dtype_bits(dtype) >= 8 && dtype != DType::bf16 && (code <= 7 || (code >= 9 && code <= 15));
      EXPECT_EQ(written.ok(), known) << dtype_name(dtype);
      if (!known) continue;
      back = read_tensor(at("t.npy"));
      ASSERT_TRUE(back.ok()) << dtype_name(dtype) << to_string(back.error());
      EXPECT_EQ(*back, t);
      EXPECT_EQ((fs::file_size(at("t.npy")) - t.byte_size()) % 64, 0u);
    }
  }
  EXPECT_EQ(write_tensor(at("t.txt"), Tensor(DType::f32, {})).error().code, ErrorCode::usage);
}

TEST_F(TensorFile, EveryNpyVersionIsRead) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  const float values[] = {1.5f, -2.0f};
  const std::string data(reinterpret_cast<const char*>(values), sizeof values);
  for (const char version : {1, 2, 3}) {
    const auto t = read_tensor(put("v.npy", npy(header, data, version)));
    ASSERT_TRUE(t.ok()) << to_string(t.error());
    EXPECT_EQ(t->as<float>()[1], -2.0f);
  }
}

TEST_F(TensorFile, BrokenNpyFilesAreRefused) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  EXPECT_TRUE(has(told(put("a.npy", "")), "no .npy file"));
  EXPECT_TRUE(has(told(put("a.npy", npy(good, "1234", 4))), "version 4"));
  EXPECT_TRUE(has(told(put("a.npy", npy(good, "1234"))), "holds 4 bytes of data, its shape needs 8"));
  EXPECT_TRUE(has(told(put("a.npy", npy("{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }", "1234"))), "'<V2' is not supported"));
  EXPECT_TRUE(has(told(put("a.npy", npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234"))), "not supported"));
  EXPECT_TRUE(has(told(put("a.npy", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "1234"))), "Fortran"));
  EXPECT_TRUE(has(told(put("a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "1234"))), "shape"));
  EXPECT_TRUE(has(told(put("a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", ""))), "addressed"));
  EXPECT_TRUE(has(told(put("a.npy", npy("{}", ""))), "descr"));
  const std::string whole = npy(good, "12345678");
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NE(told(put("a.npy", whole.substr(0, n))), "no error");
  EXPECT_TRUE(has(told(at("missing.npy")), "cannot read"));
}

TEST_F(TensorFile, TypedFieldsOfTensorProtoAreRead) {
  const auto read = [&](const onnx::TensorProto& t) { return read_tensor(put("t.pb", t.SerializeAsString())); };
  onnx::TensorProto t;
  t.add_dims(2);
  t.set_data_type(onnx::TensorProto::FLOAT);
  t.add_float_data(1.5f);
  t.add_float_data(2.5f);
  EXPECT_EQ(read(t)->as<float>()[1], 2.5f);

  t.Clear();
  t.add_dims(2);
  t.set_data_type(onnx::TensorProto::INT8);
  t.add_int32_data(-5);
  t.add_int32_data(127);
  EXPECT_EQ(read(t)->as<std::int8_t>()[0], -5);
  t.set_data_type(onnx::TensorProto::INT32);
  EXPECT_EQ(read(t)->as<std::int32_t>()[0], -5);
  t.set_data_type(onnx::TensorProto::FLOAT16);
  t.set_int32_data(0, 0x3c00);
  EXPECT_EQ(read(t)->as<std::uint16_t>()[0], 0x3c00);
  t.set_data_type(onnx::TensorProto::BOOL);
  EXPECT_EQ(read(t)->as<std::uint8_t>()[0], 1);
  t.set_data_type(22);  // INT4, newer than the schema: two to an entry
  t.clear_int32_data();
  t.add_int32_data(0x5f);
  EXPECT_EQ(read(t)->byte_size(), 1u);
  EXPECT_EQ(static_cast<int>(read(t)->bytes()[0]), 0x5f);

  t.Clear();
  t.add_dims(2);
  t.set_data_type(onnx::TensorProto::INT64);
  t.add_int64_data(-1);
  t.add_int64_data(std::int64_t{1} << 62);
  EXPECT_EQ(read(t)->as<std::int64_t>()[0], -1);
  EXPECT_EQ(read(t)->as<std::int64_t>()[1], std::int64_t{1} << 62);

  t.Clear();
  t.add_dims(2);
  t.set_data_type(onnx::TensorProto::UINT32);
  t.add_uint64_data(0xffffffffu);
  t.add_uint64_data(7);
  EXPECT_EQ(read(t)->as<std::uint32_t>()[0], 0xffffffffu);
  t.set_data_type(onnx::TensorProto::UINT64);
  EXPECT_EQ(read(t)->as<std::uint64_t>()[1], 7u);

  t.Clear();
  t.add_dims(1);
  t.set_data_type(onnx::TensorProto::DOUBLE);
  t.add_double_data(0.1);
  EXPECT_EQ(read(t)->as<double>()[0], 0.1);
  t.set_data_type(onnx::TensorProto::COMPLEX128);
  t.add_double_data(0.2);
  EXPECT_EQ(read(t)->byte_size(), 16u);

  t.set_data_type(onnx::TensorProto::STRING);
  EXPECT_TRUE(has(told(put("t.pb", t.SerializeAsString())), "string tensors are not supported"));
  t.set_data_type(77);
  EXPECT_TRUE(has(told(put("t.pb", t.SerializeAsString())), "element type 77 is unknown"));
}

TEST_F(TensorFile, TextModelsAreImportedToo) {
  const auto path = put("m.mst", "graph\n  input x : f32[N,3]\n  s = Shape(x)\n  f = Reshape(x, s)\n  y = Relu(f)\n");
  ImportOptions options;
  options.dims = {{"N", 2}};
  const auto g = import_graph(path, options);
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  EXPECT_EQ(to_string(g->desc(*g->find_value("y"))), "f32[2,3]");
  EXPECT_NE(g->constant(*g->find_value("s")), nullptr);
  options.dims = {{"M", 2}};
  EXPECT_TRUE(has(to_string(import_graph(path, options).error()), "it has \"N\""));
  EXPECT_EQ(import_graph(put("s.mst", "schedule\nstream 0: a\n"), {}).error().code, ErrorCode::usage);
  EXPECT_EQ(import_graph(put("b.mst", "graph\n  y = Nonsense()\n"), {}).error().code, ErrorCode::unsupported_operator);
}

}  // namespace
}  // namespace millstream::test
