// SPDX-License-Identifier: Apache-2.0
// A model recorded once on three streams and executed a thousand times; its trace as Chrome JSON, its kernels as an op_summary.
//   record_model [cpu|sim]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "millstream/runtime/device.h"
#include "millstream/runtime/trace_export.h"

using namespace millstream;

template <class T>
T must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}
void must(Result<void> result) {
  if (result.ok()) return;
  std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
  std::exit(1);
}

// A kernel is a function of the host. Its arguments are the launch's own copy, aligned to 8.
struct Sum {
  const std::int64_t* left;
  const std::int64_t* right;
  std::int64_t* out;
};
Result<void> add(const KernelCall& call) {
  Sum s;
  if (call.arguments.size() != sizeof s) return Error{ErrorCode::bad_value, "add takes three pointers"};
  std::memcpy(&s, call.arguments.data(), sizeof s);
  *s.out = *s.left + *s.right;
  return {};
}
const KernelFunction kAdd{"add", add};

int main(int argc, char** argv) {
  const bool sim = argc > 1 && std::strcmp(argv[1], "sim") == 0;
  Device device = must(Device::open(sim ? BackendId::sim : BackendId::cpu, 0));
  Context context = device.primary();
  Stream a = must(context.create_stream({.persistent = true})), b = must(context.create_stream({.persistent = true}));
  Stream c = must(context.create_stream({.persistent = true}));
  Event a_done = must(context.create_event(Event::Kind::snapshot)), b_done = must(context.create_event(Event::Kind::snapshot));

  // x and y on streams of their own; total takes both.
  const std::int64_t one = 1, two = 2;
  std::int64_t x = 0, y = 0, sum = 0, total = 0;
  const Sum first{&x, &one, &x}, second{&y, &two, &y}, both{&x, &y, &sum}, last{&sum, &total, &total};
  const auto launch = [](Stream& stream, const Sum& arguments) { must(stream.launch(kAdd, {}, std::as_bytes(std::span(&arguments, 1)))); };

  Model model = must(context.begin_model());
  for (Stream* stream : {&a, &b, &c}) must(model.bind(*stream, StreamRole::head));
  launch(a, first);
  must(a.record(a_done));
  launch(b, second);
  must(b.record(b_done));
  must(c.wait(a_done));
  must(c.wait(b_done));
  launch(c, both);
  launch(c, last);
  for (Stream* stream : {&a, &b, &c}) must(model.end_tasks(*stream));
  must(model.finish());

  for (int i = 0; i < 999; ++i) must(model.execute());
  device.start_trace();
  must(model.execute());
  device.stop_trace();
  const std::vector<rt::TraceEvent> trace = device.take_trace();
  std::ofstream("record_model.json") << rt::to_chrome_json(trace, 0);
  std::ofstream("record_model.csv") << rt::to_op_summary_csv(trace, 0);
  std::printf("x %lld, y %lld, total %lld\n", static_cast<long long>(x), static_cast<long long>(y), static_cast<long long>(total));
  return total == 3 * 500500 ? 0 : 1;
}
