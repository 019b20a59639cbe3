// SPDX-License-Identifier: Apache-2.0
// onnx_cases DIR...: runs backend cases as the onnx package ships them. Each DIR holds model.onnx and
// test_data_set_*/ with input_*.pb and output_*.pb. Prints one JSON object a case and line:
//   {"case", "status": "passed|unsupported|failed", "ops": [...], "opset", "reason"}
// unsupported = refused by import or instantiate for want of an operator, element type or attribute;
// anything else that is not the expected output is failed. Exit status 1 when a case failed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "millstream/import/import.h"
#include "millstream/kernels/cast.h"
#include "run_graph.h"

namespace millstream::conformance {
namespace {

namespace fs = std::filesystem;

constexpr double kRelative = 1e-3;
constexpr double kRelativeBf16 = 0x1p-7;  // one step: published bf16 data is truncated in some cases, rounded in others
constexpr double kAbsoluteOfLargest = 1e-6;

struct Outcome {
  enum class Status { passed, unsupported, failed } status = Status::passed;
  std::string reason;
};

std::string words(const Error& error) {
  std::string out = error.message;
  for (const Note& note : error.notes) {
    if (note.kind == Note::Kind::note) out += "; " + note.text;
  }
  return out;
}

Outcome outcome_of(const Error& error) {
  const bool refused = error.code == ErrorCode::unsupported_operator;
  return {refused ? Outcome::Status::unsupported : Outcome::Status::failed,
          refused ? words(error) : fmt::format("[{}] {}", error_code_info(error.code).word, words(error))};
}

void collect_ops(const Graph& graph, std::set<std::string>& ops) {
  for (const NodeId n : graph.nodes()) ops.insert(std::string(graph.type(n)));
  for (std::size_t b = 0; b < graph.body_count(); ++b) collect_ops(graph.body(BodyId(b)), ops);
}

/// prefix_0.pb, prefix_1.pb, ... in order.
std::vector<fs::path> numbered(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> out;
  while (fs::exists(folder / fmt::format("{}_{}.pb", prefix, out.size()))) {
    out.push_back(folder / fmt::format("{}_{}.pb", prefix, out.size()));
  }
  return out;
}

/// Elements as double (complex as pairs); i64 and u64 are compared exactly before this is asked.
std::vector<double> numbers(const Tensor& t) {
  std::vector<double> out;
  if (t.dtype() == DType::f64 || t.dtype() == DType::c128) {
    out.resize(t.byte_size() / sizeof(double));
    std::memcpy(out.data(), t.bytes(), t.byte_size());
    return out;
  }
  std::vector<float> narrow(static_cast<std::size_t>(t.elements()) * (t.dtype() == DType::c64 ? 2 : 1));
  if (t.dtype() == DType::c64) {
    std::memcpy(narrow.data(), t.bytes(), t.byte_size());
  } else if (!load_floats(t.dtype(), t.bytes(), 0, t.elements(), narrow.data())) {
    return out;
  }
  out.assign(narrow.begin(), narrow.end());
  return out;
}

bool is_exact(DType type) {
  return contains(elements::kInteger | elements::kBool | element_set({DType::u4, DType::i4}), type);
}

/// Empty when `have` is `want`: integers and bools exactly, reals within rtol 1e-3 and 1e-6 of the largest
/// expected magnitude; NaN equals NaN, an infinity only itself.
std::string difference(const Tensor& have, const Tensor& want) {
  if (have.dtype() != want.dtype() || !std::equal(have.shape().begin(), have.shape().end(), want.shape().begin(), want.shape().end())) {
    return fmt::format("is {}, expected {}", to_string(have.desc()), to_string(want.desc()));
  }
  if (is_exact(want.dtype()) && have == want) return "";
  const std::vector<double> a = numbers(have), b = numbers(want);
  if (a.size() != b.size() || (b.empty() && want.elements() != 0)) return fmt::format("element type {} cannot be compared", dtype_name(want.dtype()));
  double largest = 0;
  for (const double x : b) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  const double relative = want.dtype() == DType::bf16 ? kRelativeBf16 : kRelative;
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const bool same = std::isnan(b[i]) ? std::isnan(a[i])
                      : std::isinf(b[i]) || is_exact(want.dtype())
                          ? a[i] == b[i]
                          : std::abs(a[i] - b[i]) <= relative * std::abs(b[i]) + kAbsoluteOfLargest * largest;
    if (!same && wrong++ == 0) first = i;
  }
  if (wrong == 0) return is_exact(want.dtype()) ? "differs in bits that no double shows" : "";
  return fmt::format("{} of {} elements differ, the first at {}: {} instead of {}", wrong, b.size(), first, a[first], b[first]);
}

/// A tensor file for a value that the model declares as `declared`. Some shipped bf16 cases store their
/// tensors as UINT16, the bits of the bf16 elements: there, and only there, the model's type is taken.
Result<Tensor> read_case_tensor(const fs::path& file, DType declared) {
  MST_TRY(Tensor tensor, read_tensor(file.string()));
  if (declared == DType::bf16 && tensor.dtype() == DType::u16) {
    return Tensor(DType::bf16, std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end()), tensor.storage());
  }
  return tensor;
}

Outcome run_case(const fs::path& folder, std::set<std::string>& ops, int& opset) {
  const Result<Graph> graph = import_graph((folder / "model.onnx").string(), ImportOptions{});
  if (!graph.ok()) return outcome_of(graph.error());
  collect_ops(*graph, ops);
  opset = graph->opset();
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind("test_data_set_", 0) == 0) sets.push_back(entry.path());
  }
  std::sort(sets.begin(), sets.end());
  if (sets.empty()) return {Outcome::Status::failed, "no test data set"};
  for (const fs::path& set : sets) {
    const std::vector<fs::path> input_files = numbered(set, "input");
    if (input_files.size() != graph->inputs().size()) {
      return {Outcome::Status::failed, fmt::format("{} input files for {} inputs", input_files.size(), graph->inputs().size())};
    }
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < input_files.size(); ++i) {
      Result<Tensor> tensor = read_case_tensor(input_files[i], graph->desc(graph->inputs()[i]).dtype);
      if (!tensor.ok()) return {Outcome::Status::failed, words(tensor.error())};
      inputs.push_back(std::move(tensor).value());
    }
    const Result<std::vector<Tensor>> have = run_graph(*graph, inputs);
    if (!have.ok()) return outcome_of(have.error());
    const std::vector<fs::path> files = numbered(set, "output");
    if (files.empty() || files.size() != have->size()) {
      return {Outcome::Status::failed, fmt::format("{} outputs, expected {}", have->size(), files.size())};
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
      const Result<Tensor> want = read_case_tensor(files[i], graph->desc(graph->outputs()[i]).dtype);
      if (!want.ok()) return {Outcome::Status::failed, words(want.error())};
      const std::string found = difference((*have)[i], *want);
      if (!found.empty()) {
        return {Outcome::Status::failed, fmt::format("output {} of {}: {}", i, set.filename().string(), found)};
      }
    }
  }
  return {};
}

}  // namespace
}  // namespace millstream::conformance

int main(int argc, char** argv) {
  using namespace millstream::conformance;  // NOLINT: the program's own names
  if (argc < 2 || std::string(argv[1]) == "--help") {
    fmt::print("usage: onnx_cases DIR...\n");
    return argc < 2 ? 2 : 0;
  }
  bool failed = false;
  for (int i = 1; i < argc; ++i) {
    std::set<std::string> ops;
    int opset = 0;
    const Outcome outcome = run_case(argv[i], ops, opset);
    failed = failed || outcome.status == Outcome::Status::failed;
    const char* const status = outcome.status == Outcome::Status::passed        ? "passed"
                               : outcome.status == Outcome::Status::unsupported ? "unsupported"
                                                                                : "failed";
    const nlohmann::json line = {{"case", argv[i]}, {"status", status}, {"ops", ops}, {"opset", opset}, {"reason", outcome.reason}};
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    std::fflush(stdout);
  }
  return failed ? 1 : 0;
}
