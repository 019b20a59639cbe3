// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/gen.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace millstream::cli {
namespace {

// splitmix64: a seed means the same graph on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }

 private:
  std::uint64_t state_;
};

// The engines that --engines spreads over the lanes, in this order.
constexpr std::string_view kEngines[] = {"AIcoreEngine", "DNN_VM_AICPU", "VectorEngine", "DNN_HCCL", "DNN_VM_RTS"};

class Writer {
 public:
  explicit Writer(const GenOptions& options) : options_(options) {
    out_ = fmt::format("# generated: {} nodes={} seed={}\ngraph {} opset=20\n", options.topology, options.nodes,
                       options.seed, options.topology);
  }

  void input(std::string_view name, std::string_view desc) {
    fmt::format_to(std::back_inserter(out_), "  input {} : {}\n", name, desc);
  }
  void constant(std::string_view name, std::string_view desc, double low, double high) {
    fmt::format_to(std::back_inserter(out_), "  const {} : {} = fill(seed={}, low={:.6f}, high={:.6f})\n", name, desc,
                   ++constants_ + options_.seed * 1000003, low, high);
  }
  void integers(std::string_view name, std::string_view values, std::size_t count) {
    fmt::format_to(std::back_inserter(out_), "  const {} : i64[{}] = [{}]\n", name, count, values);
  }
  void output(std::string_view name) { fmt::format_to(std::back_inserter(out_), "  output {}\n", name); }

  /// One node; `lane` decides label and engine.
  void node(std::string_view name, std::string_view type, std::string_view inputs, std::uint64_t lane,
            std::string_view attrs = {}) {
    auto to = std::back_inserter(out_);
    fmt::format_to(to, "  {} = {}({})", name, type, inputs);
    if (!attrs.empty()) fmt::format_to(to, " {{{}}}", attrs);
    if (options_.labels != 0) fmt::format_to(to, " @label(\"s{}\")", lane % options_.labels);
    if (options_.engines != 0) fmt::format_to(to, " @engine(\"{}\")", kEngines[lane % options_.engines]);
    out_ += '\n';
    ++nodes_;
  }
  std::uint64_t nodes() const { return nodes_; }
  std::string take() { return std::move(out_); }

 private:
  const GenOptions& options_;
  std::string out_;
  std::uint64_t constants_ = 0;
  std::uint64_t nodes_ = 0;
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

// Two inputs average (bounded, sensitive to both); one input is negated or squashed.
std::string_view step_type(std::uint64_t inputs, std::uint64_t step) {
  if (inputs > 1) return "Mean";
  return step % 2 == 0 ? "Tanh" : "Neg";
}

std::string lanes(const GenOptions& options) {
  Writer w(options);
  Random random(options.seed);
  const std::uint64_t width = options.width.value_or(8);
  const double p = options.p.value_or(0.25);
  const std::uint64_t steps = std::max<std::uint64_t>(1, (options.nodes + width - 1) / width);
  w.input("x", "f32[16]");
  for (std::uint64_t l = 0; l < width; ++l) w.constant(fmt::format("c{}", l), "f32[16]", -1, 1);
  // The cross edges are drawn first, so that both listings hold the same graph.
  std::vector<bool> cross(width * steps);
  for (std::size_t i = 0; i < cross.size(); ++i) cross[i] = width > 1 && random.chance(p);
  const auto write = [&](std::uint64_t lane, std::uint64_t step) {
    const std::string name = fmt::format("l{}_{}", lane, step);
    if (step == 0) {
      w.node(name, "Add", fmt::format("x, c{}", lane), lane);
    } else if (cross[step * width + lane] && lane > 0) {
      // From the lane before it: in the lane listing that lane is above.
      w.node(name, "Mean", fmt::format("l{}_{}, l{}_{}", lane, step - 1, lane - 1, step - 1), lane);
    } else {
      w.node(name, step_type(1, step), fmt::format("l{}_{}", lane, step - 1), lane);
    }
  };
  if (options.listing == Listing::lanes) {
    for (std::uint64_t l = 0; l < width; ++l) {
      for (std::uint64_t s = 0; s < steps; ++s) write(l, s);
    }
  } else {
    for (std::uint64_t s = 0; s < steps; ++s) {
      for (std::uint64_t l = 0; l < width; ++l) write(l, s);
    }
  }
  return w.take();
}

std::string layered(const GenOptions& options) {
  Writer w(options);
  Random random(options.seed);
  const std::uint64_t width = options.width.value_or(4);
  const double p = options.p.value_or(0.5);
  const std::uint64_t layers = std::max<std::uint64_t>(1, (options.nodes + width - 1) / width);
  w.input("x", "f32[64,64]");
  for (std::uint64_t l = 0; l < width; ++l) w.constant(fmt::format("w{}", l), "f32[64,64]", -0.2, 0.2);
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    for (std::uint64_t l = 0; l < width; ++l) {
      const std::string name = fmt::format("n{}_{}", layer, l);
      if (layer == 0) {
        w.node(name, "MatMul", fmt::format("x, w{}", l), l);
        continue;
      }
      std::vector<std::string> inputs;
      for (std::uint64_t k = 0; k < width; ++k) {
        if (random.chance(p)) inputs.push_back(fmt::format("n{}_{}", layer - 1, k));
      }
      if (inputs.empty()) inputs.push_back(fmt::format("n{}_{}", layer - 1, l));
      if (inputs.size() == 1) {
        w.node(name, layer % 2 == 0 ? "MatMul" : "Tanh",
               layer % 2 == 0 ? fmt::format("{}, w{}", inputs[0], l) : inputs[0], l);
      } else {
        w.node(name, "Mean", joined(inputs), l);
      }
    }
  }
  return w.take();
}

std::string diamond(const GenOptions& options) {
  Writer w(options);
  const std::uint64_t width = options.width.value_or(2);
  w.input("x", "f32[64,64]");
  for (std::uint64_t l = 0; l < width; ++l) w.constant(fmt::format("w{}", l), "f32[64,64]", -0.2, 0.2);
  std::string top = "x";
  for (std::uint64_t block = 0; w.nodes() < options.nodes; ++block) {
    const std::string fork = fmt::format("fork{}", block);
    w.node(fork, "Tanh", top, 0);
    std::vector<std::string> arms;
    for (std::uint64_t l = 0; l < width; ++l) {
      arms.push_back(fmt::format("arm{}_{}", block, l));
      w.node(arms.back(), "MatMul", fmt::format("{}, w{}", fork, l), l);
    }
    top = fmt::format("join{}", block);
    w.node(top, "Mean", joined(arms), 0);
  }
  return w.take();
}

std::string star(const GenOptions& options) {
  Writer w(options);
  const std::uint64_t width = options.width.value_or(std::max<std::uint64_t>(1, options.nodes > 2 ? options.nodes - 2 : 1));
  w.input("x", "f32[64,64]");
  w.node("hub", "Tanh", "x", 0);
  std::vector<std::string> spokes;
  for (std::uint64_t l = 0; l < width; ++l) {
    w.constant(fmt::format("w{}", l), "f32[64,64]", -0.2, 0.2);
    spokes.push_back(fmt::format("spoke{}", l));
    w.node(spokes.back(), "MatMul", fmt::format("hub, w{}", l), l);
  }
  w.node("rim", "Mean", joined(spokes), 0);
  return w.take();
}

// Watts-Strogatz ring of `nodes` vertices, each joined to its 4 nearest neighbours, an edge's far end moved
// with chance p (Watts, Strogatz 1998; as a network: Xie et al. 2019). Edges point from the lower to the
// higher vertex; a vertex is a 3x3 convolution over the mean of its inputs.
std::string randwire(const GenOptions& options) {
  Writer w(options);
  Random random(options.seed);
  const std::uint64_t n = std::max<std::uint64_t>(options.nodes, 5);
  const double p = options.p.value_or(0.75);
  std::set<std::pair<std::uint64_t, std::uint64_t>> edges;
  const auto edge = [](std::uint64_t a, std::uint64_t b) { return std::make_pair(std::min(a, b), std::max(a, b)); };
  for (std::uint64_t v = 0; v < n; ++v) {
    for (std::uint64_t k = 1; k <= 2; ++k) edges.insert(edge(v, (v + k) % n));
  }
  for (std::uint64_t k = 1; k <= 2; ++k) {
    for (std::uint64_t v = 0; v < n; ++v) {
      if (!random.chance(p)) continue;
      const auto old = edge(v, (v + k) % n);
      if (edges.count(old) == 0) continue;
      for (int attempt = 0; attempt < 16; ++attempt) {
        const std::uint64_t to = random.below(n);
        if (to == v || edges.count(edge(v, to)) != 0) continue;
        edges.erase(old);
        edges.insert(edge(v, to));
        break;
      }
    }
  }
  std::vector<std::vector<std::string>> inputs(n);
  std::vector<bool> read(n, false);
  for (const auto& [a, b] : edges) {
    inputs[b].push_back(fmt::format("v{}", a));
    read[a] = true;
  }
  w.input("x", "f32[1,64,28,28]");
  for (std::uint64_t v = 0; v < n; ++v) {
    w.constant(fmt::format("w{}", v), "f32[64,64,3,3]", -0.08, 0.08);
    std::string source = "x";
    if (inputs[v].size() == 1) source = inputs[v][0];
    if (inputs[v].size() > 1) {
      source = fmt::format("m{}", v);
      w.node(source, "Mean", joined(inputs[v]), v);
    }
    w.node(fmt::format("v{}", v), "Conv", fmt::format("{}, w{}", source, v), v, "kernel_shape=[3, 3], pads=[1, 1, 1, 1]");
  }
  std::vector<std::string> sinks;
  for (std::uint64_t v = 0; v < n; ++v) {
    if (!read[v]) sinks.push_back(fmt::format("v{}", v));
  }
  w.node("out", "Mean", joined(sinks), 0);
  return w.take();
}

// Blocks of four branches (1x1; 1x1-3x3; 1x1-5x5; pool-1x1), concatenated, after Szegedy et al. 2015.
std::string inception(const GenOptions& options) {
  Writer w(options);
  w.input("x", "f32[1,64,28,28]");
  std::string top = "x";
  const auto conv = [&](const std::string& name, const std::string& in, std::uint64_t from, std::uint64_t to,
                        std::uint64_t k, std::uint64_t lane) {
    const double scale = 1.0 / static_cast<double>(from * k * k);
    w.constant("w_" + name, fmt::format("f32[{},{},{},{}]", to, from, k, k), -6 * scale, 8 * scale);
    w.node("c_" + name, "Conv", fmt::format("{}, w_{}", in, name), lane,
           fmt::format("kernel_shape=[{0}, {0}], pads=[{1}, {1}, {1}, {1}]", k, k / 2));
    w.node(name, "Relu", "c_" + name, lane);
  };
  for (std::uint64_t block = 0; w.nodes() < options.nodes; ++block) {
    const auto name = [&](std::string_view part) { return fmt::format("b{}_{}", block, part); };
    conv(name("1"), top, 64, 16, 1, 0);
    conv(name("3r"), top, 64, 24, 1, 1);
    conv(name("3"), name("3r"), 24, 24, 3, 1);
    conv(name("5r"), top, 64, 8, 1, 2);
    conv(name("5"), name("5r"), 8, 8, 5, 2);
    w.node(name("p"), "MaxPool", top, 3, "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]");
    conv(name("pp"), name("p"), 64, 16, 1, 3);
    w.node(name("out"), "Concat", fmt::format("{}, {}, {}, {}", name("1"), name("3"), name("5"), name("pp")), 0, "axis=1");
    top = name("out");
  }
  return w.take();
}

// Pre-norm encoder layers with one branch a head.
std::string transformer(const GenOptions& options) {
  Writer w(options);
  const std::uint64_t heads = options.width.value_or(4);
  const std::uint64_t d = 32;
  const std::uint64_t model = d * heads;
  w.input("x", fmt::format("f32[64,{}]", model));
  w.constant("scale", "f32[1]", 0.17, 0.18);
  std::string top = "x";
  for (std::uint64_t layer = 0; w.nodes() < options.nodes; ++layer) {
    const auto name = [&](std::string_view part) { return fmt::format("t{}_{}", layer, part); };
    const auto norm = [&](const std::string& to, const std::string& from) {
      w.constant(to + "_g", fmt::format("f32[{}]", model), 0.9, 1.1);
      w.constant(to + "_b", fmt::format("f32[{}]", model), -0.1, 0.1);
      w.node(to, "LayerNormalization", fmt::format("{0}, {1}_g, {1}_b", from, to), 0);
    };
    const auto dense = [&](const std::string& to, const std::string& from, std::uint64_t rows, std::uint64_t cols,
                           std::uint64_t lane) {
      w.constant(to + "_w", fmt::format("f32[{},{}]", rows, cols), -0.1, 0.1);
      w.node(to, "MatMul", fmt::format("{}, {}_w", from, to), lane);
    };
    norm(name("n1"), top);
    std::vector<std::string> outs;
    for (std::uint64_t h = 0; h < heads; ++h) {
      const auto head = [&](std::string_view part) { return fmt::format("t{}_h{}_{}", layer, h, part); };
      dense(head("q"), name("n1"), model, d, h);
      dense(head("k"), name("n1"), model, d, h);
      dense(head("v"), name("n1"), model, d, h);
      w.node(head("kt"), "Transpose", head("k"), h, "perm=[1, 0]");
      w.node(head("qk"), "MatMul", fmt::format("{}, {}", head("q"), head("kt")), h);
      w.node(head("s"), "Mul", fmt::format("{}, scale", head("qk")), h);
      w.node(head("a"), "Softmax", head("s"), h, "axis=-1");
      w.node(head("o"), "MatMul", fmt::format("{}, {}", head("a"), head("v")), h);
      outs.push_back(head("o"));
    }
    w.node(name("cat"), "Concat", joined(outs), 0, "axis=-1");
    dense(name("proj"), name("cat"), model, model, 0);
    w.node(name("r1"), "Add", fmt::format("{}, {}", top, name("proj")), 0);
    norm(name("n2"), name("r1"));
    dense(name("up"), name("n2"), model, model * 4, 0);
    w.node(name("act"), "Gelu", name("up"), 0);
    dense(name("down"), name("act"), model * 4, model, 0);
    w.node(name("r2"), "Add", fmt::format("{}, {}", name("r1"), name("down")), 0);
    top = name("r2");
  }
  return w.take();
}

// Dense mixture of experts: a gate and `width` experts on every token, summed by gate weight, beside one
// shared expert.
std::string moe(const GenOptions& options) {
  Writer w(options);
  const std::uint64_t experts = options.width.value_or(4);
  w.input("x", "f32[64,128]");
  std::string top = "x";
  for (std::uint64_t block = 0; w.nodes() < options.nodes; ++block) {
    const auto name = [&](std::string_view part) { return fmt::format("m{}_{}", block, part); };
    w.constant(name("gate_w"), fmt::format("f32[128,{}]", experts), -0.1, 0.1);
    w.node(name("gate"), "MatMul", fmt::format("{}, {}", top, name("gate_w")), 0);
    w.node(name("share"), "Softmax", name("gate"), 0, "axis=-1");
    std::vector<std::string> outs;
    for (std::uint64_t e = 0; e <= experts; ++e) {  // the last one is the shared expert
      const auto expert = [&](std::string_view part) { return fmt::format("m{}_e{}_{}", block, e, part); };
      w.constant(expert("w1"), "f32[128,256]", -0.1, 0.1);
      w.constant(expert("w2"), "f32[256,128]", -0.1, 0.1);
      w.node(expert("up"), "MatMul", fmt::format("{}, {}", top, expert("w1")), e);
      w.node(expert("act"), "Relu", expert("up"), e);
      w.node(expert("down"), "MatMul", fmt::format("{}, {}", expert("act"), expert("w2")), e);
      if (e == experts) {
        outs.push_back(expert("down"));
        break;
      }
      w.integers(expert("col"), fmt::format("{}", e), 1);
      w.node(expert("g"), "Gather", fmt::format("{}, {}", name("share"), expert("col")), e, "axis=1");
      w.node(expert("out"), "Mul", fmt::format("{}, {}", expert("down"), expert("g")), e);
      outs.push_back(expert("out"));
    }
    w.node(name("sum"), "Sum", joined(outs), 0);
    w.node(name("out"), "Mean", fmt::format("{}, {}", top, name("sum")), 0);
    top = name("out");
  }
  return w.take();
}

struct Row {
  Topology topology;
  std::string (*make)(const GenOptions&);
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {{"layered", "layers of --width matrix nodes, each reading layer members with chance --p (0.5)"}, layered},
      {{"lanes", "--width chains (8) of small nodes, a cross edge from the lane before with chance --p (0.25)"}, lanes},
      {{"diamond", "forks of --width arms (2) that join again, one after another"}, diamond},
      {{"randwire", "Watts-Strogatz ring, k=4, rewired with chance --p (0.75), of 3x3 convolutions"}, randwire},
      {{"inception", "blocks of four convolution branches, concatenated"}, inception},
      {{"transformer", "encoder layers with --width attention heads (4) as branches"}, transformer},
      {{"moe", "mixture of --width experts (4) beside a shared one"}, moe},
      {{"star", "one hub, --width spokes (nodes - 2), one rim"}, star},
  };
  return table;
}

}  // namespace

const std::vector<Topology>& topologies() {
  static const std::vector<Topology> list = [] {
    std::vector<Topology> out;
    for (const Row& row : rows()) out.push_back(row.topology);
    return out;
  }();
  return list;
}

Result<std::string> generate(const GenOptions& options) {
  const auto usage = [](std::string message) { return Error{ErrorCode::usage, std::move(message)}; };
  if (options.nodes < 1 || options.nodes > 100'000'000) return usage(fmt::format("--nodes {} lies outside 1..100000000", options.nodes));
  if (options.width && (*options.width < 1 || *options.width > 65535)) return usage(fmt::format("--width {} lies outside 1..65535", *options.width));
  if (options.p && !(*options.p >= 0 && *options.p <= 1)) return usage(fmt::format("--p {} lies outside 0..1", *options.p));
  if (options.engines > std::size(kEngines)) return usage(fmt::format("--engines {}: at most {}", options.engines, std::size(kEngines)));
  for (const Row& row : rows()) {
    if (row.topology.name == options.topology) return row.make(options);
  }
  std::string known;
  for (const Row& row : rows()) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.topology.name);
  return usage(fmt::format("there is no topology \"{}\"", options.topology)).help("topologies: " + known);
}

}  // namespace millstream::cli
