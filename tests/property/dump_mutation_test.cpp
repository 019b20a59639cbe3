// SPDX-License-Identifier: Apache-2.0
// Damaged dumps: each gives a graph or an error that says where; none crashes, and none takes more memory than
// 64 MiB and 4 x the file. MST_PROPERTY_COUNT says how many for each format.
#include <gtest/gtest.h>

#include "millstream/compile/compile.h"
#include "millstream/dump/dump.h"
#include "tests/memory_use.h"
#include "tests/random_dump_graph.h"
#include "tests/torch_dump.h"

namespace millstream::testing {
namespace {

// A few edits of the kinds that cut files, bad discs, editors and malice make.
std::string mutated(Random& random, std::string text) {
  for (std::uint64_t edits = 1 + random.below(4); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = random.below(text.size());
    switch (random.below(9)) {
      case 0: text[at] = static_cast<char>(random.below(256)); break;
      case 1: text.resize(at); break;
      case 2: text.erase(at, random.below(60)); break;
      case 3: text.insert(at, text.substr(random.below(text.size()), random.below(200))); break;
      case 4: text.insert(at, 1, "{}<>[]:,;\"'\\#\n-"[random.below(15)]); break;
      case 5: {  // another number
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        const std::size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
        const char* numbers[] = {"0", "-1", "65535", "65536", "2147483648", "4294967295", "9223372036854775807", "18446744073709551615", "1e9", "0x7f"};
        text.replace(digit, end - digit, numbers[random.below(10)]);
        break;
      }
      case 6: {  // a line twice, or away
        const std::size_t begin = text.rfind('\n', at) + 1;
        const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
        const std::string line = text.substr(begin, end + 1 - begin);
        if (random.chance(0.5)) {
          text.insert(begin, line);
        } else {
          text.erase(begin, line.size());
        }
        break;
      }
      case 7: {  // another name
        const char* names[] = {"stream_id", "event_id", "active_stream_list", "graph", "node", "op", "input", "_millstream_value", "ge:Send", "Recv"};
        const std::size_t quote = text.find('"', at);
        if (quote != std::string::npos) text.insert(quote + 1, names[random.below(10)]);
        break;
      }
      default: {
        const std::size_t to = random.below(text.size());
        std::swap(text[at], text[to]);
      }
    }
  }
  return text;
}

std::string written(const Graph& g, const DumpStreams& streams, DumpKind kind) {
  const bool onnx = kind == DumpKind::ge_onnx || kind == DumpKind::torch_pbtxt;
  const std::string text = write_dump(g, streams, onnx ? DumpFormat::onnx : DumpFormat::proto, DumpDetail::full);
  return kind == DumpKind::torch_txt ? torch_txt(text) : kind == DumpKind::torch_pbtxt ? torch_pbtxt(text) : text;
}

std::string text_to_damage(Random& random, DumpKind kind, const Target& target) {
  if (random.chance(0.5)) return written(random_dump_graph(random, true), {}, kind);
  RandomGraphOptions options;
  options.nodes = 1 + random.below(20);
  options.labels = 3;
  const Graph g = random_graph(random, options);
  CompileOptions compile_options;
  compile_options.assign.force_streams = true;
  const Result<Compiled> compiled = compile(g, target, compile_options);
  MST_CHECK(compiled.ok(), "a random graph compiles");
  DumpStreams streams;
  streams.schedule = &compiled->schedule;
  return written(g, streams, kind);
}

void damage(DumpKind kind) {
  const Result<Target> target = load_target("cpu");
  ASSERT_TRUE(target.ok());
  std::uint64_t read = 0;
  std::size_t longest = 0;
  const std::uint64_t before = high_water_kb();
  for (std::uint64_t seed = 0; seed < property_count(200); ++seed) {
    Random random(seed * 4 + static_cast<std::uint64_t>(kind));
    const std::string text = mutated(random, text_to_damage(random, kind, *target));
    longest = std::max(longest, text.size());
    const Result<Dump> dump = read_dump(text, "damaged");
    if (dump.ok()) {
      ++read;
      ASSERT_TRUE(verify(dump->graph).empty()) << "seed " << seed;
      if (dump->schedule) (void)check(dump->graph, *dump->schedule, nullptr);
      for (const DumpFormat format : {DumpFormat::onnx, DumpFormat::proto}) {
        ASSERT_TRUE(read_dump(write_dump(dump->graph, {}, format, DumpDetail::full), "again").ok()) << "seed " << seed;
      }
      continue;
    }
    ASSERT_FALSE(dump.error().message.empty()) << "seed " << seed;
    ASSERT_TRUE(dump.error().where.has_value()) << "seed " << seed << ": " << to_string(dump.error());
    ASSERT_GT(dump.error().where->line, 0u) << "seed " << seed;
    ASSERT_NE(dump.error().code, ErrorCode::internal) << "seed " << seed;
  }
  EXPECT_GT(read, 0u);
  if (kMemoryCounts) {
    EXPECT_LE(high_water_kb() - before, allowed_kb(longest));
  }
}

// Files that are large enough for 4 x the file to count: rows of few bytes, as many as fit.
std::string large_text(DumpKind kind) {
  const bool onnx = kind == DumpKind::ge_onnx;
  std::string text = onnx ? "ir_version: 6\ngraph {\n" : kind == DumpKind::ge_proto ? "graph {\n" : "";
  for (int n = 0; text.size() < (6u << 20); ++n) {
    const std::string name = "n" + std::to_string(n), source = "n" + std::to_string(n - 8) + ":0", stream = std::to_string(n % 8);
    text += onnx || kind == DumpKind::torch_pbtxt ? "node {\nname: \"" + name + "\"\n" : "op {\nname: \"" + name + "\"\n";
    text += onnx ? "op_type: \"ge:Abs\"\n" : kind == DumpKind::torch_pbtxt ? "op: \"Abs\"\n" : "type: \"Abs\"\n";
    if (n >= 8) text += "input: \"" + source + "\"\n";
    if (onnx) {
      text += "attribute {\nname: \"stream_id\"\ni: " + stream + "\ntype: INT\n}\n";
    } else if (kind == DumpKind::torch_pbtxt) {
      text += "attr {\nkey: \"stream_id\"\nvalue {\ns: \"" + stream + "\"\n}\n}\n";
    } else {
      text += "stream_id: " + stream + "\n";
    }
    text += "}\n";
  }
  return kind == DumpKind::ge_onnx || kind == DumpKind::ge_proto ? text + "}\n" : text;
}

TEST(DumpMutation, DamagedLargeFilesTakeNoMoreMemoryThanWholeOnes) {
  for (const DumpKind kind : {DumpKind::ge_onnx, DumpKind::ge_proto, DumpKind::torch_txt, DumpKind::torch_pbtxt}) {
    const std::string whole = large_text(kind);
    const std::uint64_t before = high_water_kb();
    for (std::uint64_t seed = 0; seed < std::max<std::uint64_t>(4, property_count(200) / 100); ++seed) {
      Random random(seed);
      const Result<Dump> dump = read_dump(seed == 0 ? whole : mutated(random, whole), "large");
      if (seed == 0) {
        ASSERT_TRUE(dump.ok()) << to_string(dump.error());
      }
      ASSERT_TRUE(dump.ok() || dump.error().where.has_value()) << "seed " << seed;
    }
    if (kMemoryCounts) {
      EXPECT_LE(high_water_kb() - before, allowed_kb(whole.size())) << to_string(kind);
    }
  }
}

TEST(DumpMutation, DamagedOnnxIsReadOrRefusedInItsPlace) { damage(DumpKind::ge_onnx); }

TEST(DumpMutation, DamagedProtoIsReadOrRefusedInItsPlace) { damage(DumpKind::ge_proto); }

TEST(DumpMutation, DamagedTextOfTorchAirIsReadOrRefusedInItsPlace) { damage(DumpKind::torch_txt); }

TEST(DumpMutation, DamagedPbtxtOfTorchAirIsReadOrRefusedInItsPlace) { damage(DumpKind::torch_pbtxt); }

}  // namespace
}  // namespace millstream::testing
