// SPDX-License-Identifier: Apache-2.0
// Programs with control flow on the device's streams give what a walk over the nested graphs gives, bit for bit.
#include <gtest/gtest.h>

#include "millstream/assign/cost_model.h"
#include "millstream/compile/compile.h"
#include "millstream/exec/control_flow.h"
#include "millstream/exec/executable.h"
#include "millstream/exec/node_call.h"
#include "millstream/graph/text.h"
#include "tests/random_values.h"

namespace millstream {
namespace {

// The reference: recursion over the source, node after node. Of the library only kernels, and the joining of turns.
class Walk {
 public:
  using Values = std::map<std::string, Tensor>;

  static std::vector<Tensor> run(const Graph& g, Values values, const std::vector<Tensor>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) values[std::string(g.name(g.inputs()[i]))] = inputs[i];
    for (const ValueId v : g.values()) {
      if (const Tensor* constant = g.constant(v)) values[std::string(g.name(v))] = *constant;
    }
    for (const NodeId n : g.order()) node(g, n, values);
    std::vector<Tensor> out;
    for (const ValueId v : g.outputs()) out.push_back(values.at(std::string(g.name(v))));
    return out;
  }

 private:
  static const Graph& body(const Graph& g, NodeId n, std::string_view attribute) {
    for (const Body& b : g.bodies(n)) {
      if (b.attribute == attribute) return g.body(b.body);
    }
    ADD_FAILURE() << "no body " << attribute;
    std::abort();
  }

  static Tensor whole(std::int64_t value) {
    Tensor t(DType::i64, {});
    t.as_mutable<std::int64_t>()[0] = value;
    return t;
  }
  static Tensor truth(bool value) {
    Tensor t(DType::boolean, {});
    t.as_mutable<std::uint8_t>()[0] = value ? 1 : 0;
    return t;
  }
  static std::int64_t whole_of(const Tensor& t) { return t.dtype() == DType::boolean ? t.as<std::uint8_t>()[0] : t.as<std::int64_t>()[0]; }

  static std::vector<Tensor> tail(const std::vector<Tensor>& list, std::size_t from) { return {list.begin() + static_cast<std::ptrdiff_t>(from), list.end()}; }

  static Tensor joined(const Graph& g, ValueId out, const std::vector<Tensor>& turns) {
    const TensorDesc& whole = g.desc(out);
    TensorDesc part{whole.dtype, std::vector<Dim>(whole.shape->begin() + 1, whole.shape->end())};
    return stack(turns, part, 0, false, "walk").value();
  }

  static void node(const Graph& g, NodeId n, Values& values) {
    std::vector<Tensor> in;
    for (const InputRef i : g.inputs(n)) in.push_back(i.get() ? values.at(std::string(g.name(*i.get()))) : Tensor());
    const std::string_view type = g.type(n);
    std::vector<Tensor> out;
    if (type == "If") {
      out = run(body(g, n, whole_of(in[0]) != 0 ? "then_branch" : "else_branch"), values, {});
    } else if (type == "Case") {
      const auto count = static_cast<std::int64_t>(g.bodies(n).size());
      const std::int64_t i = whole_of(in[0]);
      out = run(body(g, n, fmt::format("branches{}", i < 0 || i >= count ? count - 1 : i)), values, tail(in, 1));
    } else if (type == "PartitionedCall") {
      out = run(body(g, n, "f"), values, in);
    } else if (type == "While") {
      out = in;
      while (whole_of(run(body(g, n, "cond"), values, out)[0]) != 0) out = run(body(g, n, "body"), values, out);
    } else if (type == "For") {
      out = tail(in, 3);
      const std::int64_t to = whole_of(in[1]), step = whole_of(in[2]);
      for (std::int64_t i = whole_of(in[0]); step > 0 ? i < to : i > to; i += step) {
        std::vector<Tensor> turn = {whole(i)};
        turn.insert(turn.end(), out.begin(), out.end());
        out = run(body(g, n, "body"), values, turn);
      }
    } else if (type == "Loop") {
      const bool limited = in[0].bytes() != nullptr, asked = in[1].bytes() != nullptr;
      bool go = !asked || whole_of(in[1]) != 0;
      out = tail(in, 2);
      std::vector<Tensor> rows;
      for (std::int64_t i = 0; go && (!limited || i < whole_of(in[0])); ++i) {
        std::vector<Tensor> turn = {whole(i), truth(go)};
        turn.insert(turn.end(), out.begin(), out.end());
        const std::vector<Tensor> made = run(body(g, n, "body"), values, turn);
        if (asked || !limited) go = whole_of(made[0]) != 0;
        out = {made[1], made[2]};
        rows.push_back(made[3]);
      }
      out.push_back(joined(g, g.outputs(n)[2], rows));
    } else if (type == "Scan") {
      const bool columns = !g.attrs(n).get_ints("scan_input_axes").empty(), backwards = !g.attrs(n).get_ints("scan_input_directions").empty();
      out = {in[0]};
      std::vector<Tensor> rows;
      for (std::size_t turn = 0; turn < 3; ++turn) {
        const std::size_t r = backwards ? 2 - turn : turn;
        Tensor row(DType::f32, {4});
        for (std::size_t c = 0; c < 4; ++c) row.as_mutable<float>()[c] = in[1].as<float>()[columns ? c * 3 + r : r * 4 + c];
        const std::vector<Tensor> made = run(body(g, n, "body"), values, {out[0], row});
        out = {made[0]};
        rows.push_back(made[1]);
      }
      out.push_back(joined(g, g.outputs(n)[1], rows));
    } else {
      out = kernel(g, n, in);
    }
    for (std::size_t i = 0; i < out.size(); ++i) values[std::string(g.name(g.outputs(n)[i]))] = out[i];
  }

  static std::vector<Tensor> kernel(const Graph& g, NodeId n, const std::vector<Tensor>& in) {
    TensorTable table(g.value_count());
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (const auto v = g.inputs(n)[i].get()) table[*v] = in[i];
    }
    auto call = prepare_call(KernelSpec{g, n, 1}, cpu_kernels(), table, std::vector<bool>(g.value_count(), false));
    EXPECT_TRUE(call.ok()) << to_string(call.error());
    StreamScratch scratch;
    const auto done = run_call(g, *call, table, scratch);
    EXPECT_TRUE(done.ok()) << to_string(done.error());
    std::vector<Tensor> out;
    for (const ValueId v : g.outputs(n)) out.push_back(table[v]);
    return out;
  }
};

std::vector<Tensor> some_inputs(testing::Random& random) {
  std::vector<Tensor> out;
  for (int i = 0; i < 2; ++i) {
    Tensor t(DType::f32, {4});
    for (float& x : t.as_mutable<float>()) x = static_cast<float>(static_cast<int>(random.below(9)) - 4) / 2;
    out.push_back(t);
  }
  return out;
}

TEST(ControlValues, RandomProgramsGiveOnTheDeviceWhatAWalkOverTheirBodiesGives) {
  const std::uint64_t count = testing::property_count(150);
  std::size_t with_control = 0, on_many = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    testing::Random random(seed);
    const std::string text = testing::ValueProgram(random).build();
    const Result<Graph> source = parse_graph(text, "values");
    ASSERT_TRUE(source.ok()) << to_string(source.error()) << text;
    const Result<Target> npu = load_target("npu");
    ASSERT_TRUE(npu.ok());
    const Target& target = *npu;
    CompileOptions options;
    options.assign.strategy = Strategy::ge;
    const Result<Graph> graph = prepare(*source, target, options);
    ASSERT_TRUE(graph.ok()) << to_string(graph.error()) << text;
    const Result<Compiled> compiled = compile(*graph, target, options);
    ASSERT_TRUE(compiled.ok()) << to_string(compiled.error()) << text;
    with_control += compiled->schedule.has_control() ? 1 : 0;
    on_many += compiled->schedule.has_control() && compiled->schedule.streams.size() > 1 ? 1 : 0;

    std::vector<std::unique_ptr<Backend>> backends;
    backends.push_back(make_cpu_backend(1 + static_cast<std::uint32_t>(seed % 4), 1));
    backends.push_back(make_sim_backend(target, durations_us(*graph, target, 1), true));
    for (const auto& backend : backends) {
      SCOPED_TRACE(backend->name());
      auto executable = instantiate(*graph, compiled->schedule, compiled->memory, all_kernels(), *backend, {});
      ASSERT_TRUE(executable.ok()) << to_string(executable.error()) << text;
      for (std::uint64_t turn = 0; turn < 3; ++turn) {
        const std::vector<Tensor> inputs = some_inputs(random);
        ExecuteOptions execute;
        execute.trace = turn == 1;
        if (turn == 2) execute.delay_seed = seed;
        const auto got = run(*executable, inputs, execute);
        ASSERT_TRUE(got.ok()) << to_string(got.error()) << text;
        const std::vector<Tensor> want = Walk::run(*source, {}, inputs);
        for (std::size_t i = 0; i < want.size(); ++i) ASSERT_TRUE(got->outputs[i] == want[i]) << "output " << i << "\n" << text << print(*graph, compiled->schedule);
      }
    }
  }
  fmt::print("{} programs, {} with control flow on the device, {} of them on several streams\n", count, with_control, on_many);
  EXPECT_GT(with_control * 2, count);
  EXPECT_GT(on_many * 4, count);
}

}  // namespace
}  // namespace millstream
