// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM. One product for all steps' inputs, one product a step for the state.
//
// Rows of one step belong to the samples of the batch; a sample shorter than the longest stops changing
// at its length, and its reverse direction starts there.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>

#include "millstream/kernels/product.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

enum class CellKind { rnn, gru, lstm };

constexpr std::int64_t gates_of(CellKind kind) { return kind == CellKind::lstm ? 4 : kind == CellKind::gru ? 3 : 1; }

enum class Curve {
  affine, elu, hard_sigmoid, leaky_relu, relu, scaled_tanh, sigmoid, softplus, softsign, tanh, thresholded_relu,
};

struct CurveRow {
  std::string_view name;
  Curve curve;
  bool has_alpha;
  float alpha;
  bool has_beta;
  float beta;
};

constexpr CurveRow kCurves[] = {
    {"affine", Curve::affine, true, 1.0f, true, 0.0f},
    {"elu", Curve::elu, true, 1.0f, false, 0.0f},
    {"hardsigmoid", Curve::hard_sigmoid, true, 0.2f, true, 0.5f},
    {"leakyrelu", Curve::leaky_relu, true, 0.01f, false, 0.0f},
    {"relu", Curve::relu, false, 0.0f, false, 0.0f},
    {"scaledtanh", Curve::scaled_tanh, true, 1.0f, true, 1.0f},
    {"sigmoid", Curve::sigmoid, false, 0.0f, false, 0.0f},
    {"softplus", Curve::softplus, false, 0.0f, false, 0.0f},
    {"softsign", Curve::softsign, false, 0.0f, false, 0.0f},
    {"tanh", Curve::tanh, false, 0.0f, false, 0.0f},
    {"thresholdedrelu", Curve::thresholded_relu, true, 1.0f, false, 0.0f},
};

struct Activation {
  Curve curve = Curve::tanh;
  float alpha = 0;
  float beta = 0;

  template <class T>
  T operator()(T x) const {
    const T a = static_cast<T>(alpha), b = static_cast<T>(beta), one{1}, zero{0};
    switch (curve) {
      case Curve::affine: return a * x + b;
      case Curve::elu: return x >= zero ? x : a * std::expm1(x);
      case Curve::hard_sigmoid: return std::min(one, std::max(zero, a * x + b));
      case Curve::leaky_relu: return x >= zero ? x : a * x;
      case Curve::relu: return std::max(zero, x);
      case Curve::scaled_tanh: return a * std::tanh(b * x);
      case Curve::sigmoid: return one / (one + std::exp(-x));
      case Curve::softplus: return x > zero ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
      case Curve::softsign: return x / (one + std::abs(x));
      case Curve::tanh: return std::tanh(x);
      case Curve::thresholded_relu: return x > a ? x : zero;
    }
    return x;
  }
};

struct CellAttrs {
  std::string node;
  CellKind kind;
  std::int64_t directions;
  bool reverse_first;
  bool batch_first;
  bool input_forget;
  bool linear_before_reset;
  std::optional<float> clip;
  std::vector<Activation> activations;  ///< those of the first direction, then of the second
  int threads;
};

Result<std::vector<Activation>> read_activations(const KernelSpec& spec, CellKind kind, std::int64_t directions) {
  std::vector<std::string> names = spec.attrs().get_strings("activations");
  const std::size_t each = kind == CellKind::lstm ? 3 : kind == CellKind::gru ? 2 : 1;
  const auto wanted = each * static_cast<std::size_t>(directions);
  if (names.empty()) {
    for (std::int64_t d = 0; d < directions; ++d) {
      if (kind != CellKind::rnn) names.push_back("sigmoid");
      names.push_back("tanh");
      if (kind == CellKind::lstm) names.push_back("tanh");
    }
  }
  if (names.size() != wanted) {
    return unsupported_node(spec, fmt::format("{} activations where {} are needed", names.size(), wanted));
  }
  const std::vector<float> alphas = spec.attrs().get_floats("activation_alpha");
  const std::vector<float> betas = spec.attrs().get_floats("activation_beta");
  std::size_t alpha = 0, beta = 0;
  std::vector<Activation> out;
  for (std::string name : names) {
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto* row = std::find_if(std::begin(kCurves), std::end(kCurves),
                                   [&](const CurveRow& r) { return r.name == name; });
    if (row == std::end(kCurves)) return unsupported_node(spec, fmt::format("activation \"{}\"", name));
    Activation a{row->curve, row->alpha, row->beta};
    // The lists are consumed in order by the functions that take a parameter.
    if (row->has_alpha && alpha < alphas.size()) a.alpha = alphas[alpha++];
    if (row->has_beta && beta < betas.size()) a.beta = betas[beta++];
    out.push_back(a);
  }
  return out;
}

/// c[m, n] = (add ? c : 0) + a[m, k] x b[n, k]^T.
template <class T>
void product_transposed(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, const T* b, bool add, T* c) {
  if constexpr (std::is_same_v<T, float>) {
    onednn::sgemm(false, true, m, n, k, 1.0f, a, k, b, k, add ? 1.0f : 0.0f, c, n);
  } else {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        T sum = add ? c[i * n + j] : T{};
        for (std::int64_t x = 0; x < k; ++x) sum += a[i * k + x] * b[j * k + x];
        c[i * n + j] = sum;
      }
    }
  }
}

struct Sizes {
  std::int64_t steps, batch, input, hidden, directions;
};

/// What one direction works on. Weight rows are gate-major; `peephole` holds i, o, f or is null.
template <class T>
struct Direction {
  const T* w;
  const T* r;
  const T* bias;  ///< W's bias, then R's; or null
  const T* peephole;
  const Activation* act;
  bool reverse;
};

template <class T>
class Recurrence {
 public:
  Recurrence(const CellAttrs& attrs, const Sizes& sizes) : attrs_(attrs), s_(sizes) {}

  /// x [steps, batch, input] time-major; lengths [batch]; h, c [batch, hidden] hold the first state and
  /// then the last. emit(step, sample, row of hidden) is called for each step within a sample's length.
  template <class Emit>
  void run(const Direction<T>& d, const T* x, const std::vector<std::int64_t>& lengths, T* h, T* c, Emit emit) {
    const std::int64_t g = gates_of(attrs_.kind), hidden = s_.hidden, width = g * hidden;
    std::vector<T> pre(static_cast<std::size_t>(s_.steps * s_.batch * width));
    product_transposed(s_.steps * s_.batch, width, s_.input, x, d.w, false, pre.data());
    std::vector<T> gates(static_cast<std::size_t>(s_.batch * width)), state(gates.size()), gated(gates.size());
    for (std::int64_t step = 0; step < s_.steps; ++step) {
      for (std::int64_t b = 0; b < s_.batch; ++b) {
        const std::int64_t t = time_of(step, lengths[static_cast<std::size_t>(b)], d.reverse);
        std::copy_n(pre.data() + (std::max<std::int64_t>(t, 0) * s_.batch + b) * width, width, gates.data() + b * width);
      }
      product_transposed(s_.batch, width, hidden, h, d.r, false, state.data());
      if (attrs_.kind == CellKind::gru && !attrs_.linear_before_reset) reset_state(d, h, gates, state, gated);
      for (std::int64_t b = 0; b < s_.batch; ++b) {
        const std::int64_t t = time_of(step, lengths[static_cast<std::size_t>(b)], d.reverse);
        if (t < 0) continue;
        T* row = h + b * hidden;
        const T* gate = gates.data() + b * width;
        const T* from = state.data() + b * width;
        for (std::int64_t j = 0; j < hidden; ++j) {
          switch (attrs_.kind) {
            case CellKind::rnn: row[j] = activate(d.act[0], gate[j] + from[j] + bias_of(d, j)); break;
            case CellKind::gru: row[j] = gru(d, gate, from, row[j], j); break;
            case CellKind::lstm: row[j] = lstm(d, gate, from, c[b * hidden + j], j); break;
          }
        }
        emit(t, b, row);
      }
    }
  }

 private:
  /// The time that a sample of this length works on in a step; -1 when it has ended.
  static std::int64_t time_of(std::int64_t step, std::int64_t length, bool reverse) {
    if (step >= length) return -1;
    return reverse ? length - 1 - step : step;
  }

  T activate(const Activation& a, T x) const {
    if (attrs_.clip) x = std::clamp(x, static_cast<T>(-*attrs_.clip), static_cast<T>(*attrs_.clip));
    return a(x);
  }

  T input_bias(const Direction<T>& d, std::int64_t at) const { return d.bias == nullptr ? T{} : d.bias[at]; }
  T state_bias(const Direction<T>& d, std::int64_t at) const {
    return d.bias == nullptr ? T{} : d.bias[gates_of(attrs_.kind) * s_.hidden + at];
  }
  T bias_of(const Direction<T>& d, std::int64_t at) const { return input_bias(d, at) + state_bias(d, at); }

  T gru_gate(const Direction<T>& d, const T* gate, const T* from, std::int64_t at) const {
    return activate(d.act[0], gate[at] + from[at] + bias_of(d, at));
  }

  /// The reset state's product with the candidate's rows: (r * h) x Rh^T in place of h x Rh^T.
  void reset_state(const Direction<T>& d, const T* h, const std::vector<T>& gates, std::vector<T>& state,
                   std::vector<T>& gated) const {
    const std::int64_t hidden = s_.hidden, width = 3 * hidden;
    for (std::int64_t b = 0; b < s_.batch; ++b) {
      for (std::int64_t j = 0; j < hidden; ++j) {
        const T r = gru_gate(d, gates.data() + b * width, state.data() + b * width, hidden + j);
        gated[static_cast<std::size_t>(b * hidden + j)] = r * h[b * hidden + j];
      }
    }
    std::vector<T> candidate(static_cast<std::size_t>(s_.batch * hidden));
    product_transposed(s_.batch, hidden, hidden, gated.data(), d.r + 2 * hidden * hidden, false, candidate.data());
    for (std::int64_t b = 0; b < s_.batch; ++b) {
      std::copy_n(candidate.data() + b * hidden, hidden, state.data() + b * width + 2 * hidden);
    }
  }

  T gru(const Direction<T>& d, const T* gate, const T* from, T before, std::int64_t j) const {
    const std::int64_t hidden = s_.hidden, at = 2 * hidden + j;
    const T z = gru_gate(d, gate, from, j);
    T sum = gate[at] + input_bias(d, at);
    if (attrs_.linear_before_reset) {
      sum += gru_gate(d, gate, from, hidden + j) * (from[at] + state_bias(d, at));
    } else {
      sum += from[at] + state_bias(d, at);
    }
    const T candidate = activate(d.act[1], sum);
    return (T{1} - z) * candidate + z * before;
  }

  T lstm(const Direction<T>& d, const T* gate, const T* from, T& cell, std::int64_t j) const {
    const std::int64_t hidden = s_.hidden;
    const auto sum = [&](std::int64_t g) {
      const std::int64_t at = g * hidden + j;
      return gate[at] + from[at] + bias_of(d, at);
    };
    const auto peep = [&](std::int64_t g) { return d.peephole == nullptr ? T{} : d.peephole[g * hidden + j]; };
    const T in = activate(d.act[0], sum(0) + peep(0) * cell);
    const T forget = attrs_.input_forget ? T{1} - in : activate(d.act[0], sum(2) + peep(2) * cell);
    cell = forget * cell + in * activate(d.act[1], sum(3));
    const T out = activate(d.act[0], sum(1) + peep(1) * cell);
    // The clip bounds what gates take in, not the cell.
    return out * d.act[2](cell);
  }

  const CellAttrs& attrs_;
  Sizes s_;
};

Result<Sizes> sizes_of(const CellAttrs& attrs, KernelArgs& args) {
  const Tensor &x = args.input(0), &w = args.input(1), &r = args.input(2);
  const auto fail = [&](std::string_view what) { return Result<Sizes>(kernel_failed(attrs.node, what)); };
  if (x.shape().size() != 3 || w.shape().size() != 3 || r.shape().size() != 3) return fail("X, W and R need rank 3");
  const std::int64_t g = gates_of(attrs.kind), directions = attrs.directions;
  const std::int64_t hidden = r.shape()[2];
  const Sizes s{x.shape()[attrs.batch_first ? 1 : 0], x.shape()[attrs.batch_first ? 0 : 1], x.shape()[2], hidden,
                directions};
  const auto is = [](const Tensor& t, std::initializer_list<std::int64_t> dims) {
    return std::equal(t.shape().begin(), t.shape().end(), dims.begin(), dims.end());
  };
  if (!is(w, {directions, g * hidden, s.input}) || !is(r, {directions, g * hidden, hidden})) {
    return fail("W or R does not have the shape that X, the directions and the hidden size give");
  }
  if (args.has_input(3) && !is(args.input(3), {directions, 2 * g * hidden})) return fail("B has a wrong shape");
  if (args.has_input(4) && (args.input(4).dtype() != DType::i32 || args.input(4).elements() != s.batch)) {
    return fail("sequence_lens must hold one int32 a sample");
  }
  for (std::size_t i : {std::size_t{5}, std::size_t{6}}) {
    if (args.has_input(i) && args.input(i).elements() != directions * s.batch * hidden) {
      return fail("an initial state has a wrong shape");
    }
  }
  if (args.has_input(7) && args.input(7).elements() != directions * 3 * hidden) return fail("P has a wrong shape");
  for (std::size_t i = 0; i < 8; ++i) {
    if (i != 4 && args.has_input(i) && args.input(i).dtype() != x.dtype()) return fail("element types differ");
  }
  return s;
}

template <class T>
Result<void> run_cell(const CellAttrs& attrs, const Sizes& s, KernelArgs& args) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(s.batch), s.steps);
  if (args.has_input(4)) {
    const auto given = args.input(4).as<std::int32_t>();
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      if (given[b] < 0 || given[b] > s.steps) {
        return kernel_failed(attrs.node, fmt::format("sequence length {} is outside [0, {}]", given[b], s.steps));
      }
      lengths[b] = given[b];
    }
  }
  const RealIn<T> x(args.input(0)), w(args.input(1)), r(args.input(2));
  std::optional<RealIn<T>> bias, first_h, first_c, peephole;
  if (args.has_input(3)) bias.emplace(args.input(3));
  if (args.has_input(5)) first_h.emplace(args.input(5));
  if (args.has_input(6)) first_c.emplace(args.input(6));
  if (args.has_input(7)) peephole.emplace(args.input(7));

  const T* steps = x.data();
  std::vector<T> time_major;
  if (attrs.batch_first) {
    time_major.resize(static_cast<std::size_t>(s.steps * s.batch * s.input));
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t t = 0; t < s.steps; ++t) {
        std::copy_n(x.data() + (b * s.steps + t) * s.input, s.input,
                    time_major.data() + (t * s.batch + b) * s.input);
      }
    }
    steps = time_major.data();
  }

  const auto wanted = [&](std::size_t i, std::int64_t elements) {
    return i < args.output_count() && args.output(i).dtype() == args.input(0).dtype() &&
           args.output(i).elements() == elements;
  };
  std::optional<RealOut<T>> all, last_h, last_c;
  if (wanted(0, s.steps * s.directions * s.batch * s.hidden)) {
    all.emplace(args.output(0));
    std::fill_n(all->data(), args.output(0).elements(), T{});  // steps beyond a sample's length
  }
  if (wanted(1, s.directions * s.batch * s.hidden)) last_h.emplace(args.output(1));
  if (attrs.kind == CellKind::lstm && wanted(2, s.directions * s.batch * s.hidden)) last_c.emplace(args.output(2));

  const std::int64_t g = gates_of(attrs.kind), state_size = s.batch * s.hidden;
  const std::size_t acts = attrs.activations.size() / static_cast<std::size_t>(s.directions);
  const auto state_at = [&](std::int64_t d, std::int64_t b) {
    return (attrs.batch_first ? b * s.directions + d : d * s.batch + b) * s.hidden;
  };
  Recurrence<T> cell(attrs, s);
  for (std::int64_t d = 0; d < s.directions; ++d) {
    std::vector<T> h(static_cast<std::size_t>(state_size)), c(h.size());
    for (std::int64_t b = 0; b < s.batch; ++b) {
      if (first_h) std::copy_n(first_h->data() + state_at(d, b), s.hidden, h.data() + b * s.hidden);
      if (first_c) std::copy_n(first_c->data() + state_at(d, b), s.hidden, c.data() + b * s.hidden);
    }
    const Direction<T> direction{w.data() + d * g * s.hidden * s.input,
                                 r.data() + d * g * s.hidden * s.hidden,
                                 bias ? bias->data() + d * 2 * g * s.hidden : nullptr,
                                 peephole ? peephole->data() + d * 3 * s.hidden : nullptr,
                                 attrs.activations.data() + static_cast<std::size_t>(d) * acts,
                                 d == 1 || attrs.reverse_first};
    cell.run(direction, steps, lengths, h.data(), c.data(), [&](std::int64_t t, std::int64_t b, const T* row) {
      if (!all) return;
      const std::int64_t at = attrs.batch_first ? (b * s.steps + t) * s.directions + d
                                                : (t * s.directions + d) * s.batch + b;
      std::copy_n(row, s.hidden, all->data() + at * s.hidden);
    });
    for (std::int64_t b = 0; b < s.batch; ++b) {
      if (last_h) std::copy_n(h.data() + b * s.hidden, s.hidden, last_h->data() + state_at(d, b));
      if (last_c) std::copy_n(c.data() + b * s.hidden, s.hidden, last_c->data() + state_at(d, b));
    }
  }
  return {};
}

template <CellKind kind>
Result<std::unique_ptr<Kernel>> make_cell(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  const std::string direction = spec.attrs().get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return unsupported_node(spec, fmt::format("direction \"{}\"", direction));
  }
  CellAttrs attrs{std::string(spec.name()), kind, direction == "bidirectional" ? 2 : 1, direction == "reverse",
                  spec.attrs().get_int("layout", 0) != 0, spec.attrs().get_int("input_forget", 0) != 0,
                  spec.attrs().get_int("linear_before_reset", 0) != 0, std::nullopt, {}, std::max(1, spec.threads)};
  if (spec.attrs().has("clip")) {
    const float clip = spec.attrs().get_float("clip", 0.0f);
    if (!(clip >= 0.0f)) return unsupported_node(spec, "clip is negative");
    attrs.clip = clip;
  }
  MST_TRY(attrs.activations, read_activations(spec, kind, attrs.directions));
  return make_function_kernel([attrs = std::move(attrs)](KernelArgs& args) -> Result<void> {
    MST_TRY(const Sizes sizes, sizes_of(attrs, args));
    const onednn::ThreadCount guard(attrs.threads);
    return with_real(args.input(0).dtype(),
                     [&](auto zero) { return run_cell<decltype(zero)>(attrs, sizes, args); });
  });
}

constexpr KernelEntry kEntries[] = {
    {"GRU", make_cell<CellKind::gru>}, {"LSTM", make_cell<CellKind::lstm>}, {"RNN", make_cell<CellKind::rnn>}};

}  // namespace

std::span<const KernelEntry> kernels_recurrent() { return kEntries; }

}  // namespace millstream
