// SPDX-License-Identifier: Apache-2.0
// One input, one output, element by element. f16 and bf16 compute in float.
#include <algorithm>
#include <cmath>
#include <limits>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/elements.h"
#include "millstream/kernels/exp.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

/// The two attributes that some of the functions below read.
struct Constants {
  double alpha = 0;
  double beta = 0;
};

/// 1 / (1 + e^-x) without overflow on either side.
template <class T>
T logistic(T x) {
  if constexpr (std::is_same_v<T, float>) {
    // fast_exp saturates at both ends, which is where the result is 0 or 1; NaN passes through.
    const float y = 1.0f / (1.0f + fast_exp(-x));
    return x != x ? x : y;
  } else {
    return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
  }
}
template <class T>
T softplus(T x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

// Each struct: `apply(x, c)` for T = float or double (real functions) or any number.
struct Relu {
  template <class T>
  static T apply(T x, const Constants&) {
    return x < T(0) ? T(0) : x;
  }
};
struct LeakyRelu {
  template <class T>
  static T apply(T x, const Constants& c) {
    return x < T(0) ? x * static_cast<T>(c.alpha) : x;
  }
};
struct ThresholdedRelu {
  template <class T>
  static T apply(T x, const Constants& c) {
    return x > static_cast<T>(c.alpha) ? x : T(0);
  }
};
struct Elu {
  template <class T>
  static T apply(T x, const Constants& c) {
    return x < T(0) ? static_cast<T>(c.alpha) * std::expm1(x) : x;
  }
};
struct Selu {
  template <class T>
  static T apply(T x, const Constants& c) {
    return static_cast<T>(c.beta) * (x > T(0) ? x : static_cast<T>(c.alpha) * std::expm1(x));
  }
};
struct Celu {
  template <class T>
  static T apply(T x, const Constants& c) {
    const T alpha = static_cast<T>(c.alpha);
    return std::max(T(0), x) + std::min(T(0), alpha * std::expm1(x / alpha));
  }
};
struct Sigmoid {
  template <class T>
  static T apply(T x, const Constants&) {
    return logistic(x);
  }
};
struct HardSigmoid {
  template <class T>
  static T apply(T x, const Constants& c) {
    const T y = static_cast<T>(c.alpha) * x + static_cast<T>(c.beta);
    return y < T(0) ? T(0) : (y > T(1) ? T(1) : y);
  }
};
struct HardSwish {
  template <class T>
  static T apply(T x, const Constants&) {
    const T y = x / T(6) + T(0.5);
    return x * (y < T(0) ? T(0) : (y > T(1) ? T(1) : y));
  }
};
struct Swish {
  template <class T>
  static T apply(T x, const Constants& c) {
    return x * logistic(static_cast<T>(c.alpha) * x);
  }
};
struct Mish {
  template <class T>
  static T apply(T x, const Constants&) {
    return x * std::tanh(softplus(x));
  }
};
struct GeluErf {
  template <class T>
  static T apply(T x, const Constants&) {
    return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
  }
};
struct GeluTanh {
  template <class T>
  static T apply(T x, const Constants&) {
    const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
    // 0.5 (1 + tanh y) is the logistic function of 2 y.
    return x * logistic(T(2) * inner);
  }
};
struct Softplus {
  template <class T>
  static T apply(T x, const Constants&) {
    return softplus(x);
  }
};
struct Softsign {
  template <class T>
  static T apply(T x, const Constants&) {
    return x / (T(1) + std::abs(x));
  }
};
struct Shrink {
  template <class T>
  static T apply(T x, const Constants& c) {
    const double v = static_cast<double>(x);
    return v < -c.alpha ? static_cast<T>(v + c.beta) : (v > c.alpha ? static_cast<T>(v - c.beta) : T(0));
  }
};
struct Exp {
  template <class T>
  static T apply(T x, const Constants&) {
    return std::exp(x);
  }
};
/// Rounds ties to even whatever the processor's rounding mode is set to elsewhere: nearbyint in the
/// default mode, which nothing in this program changes.
struct Round {
  template <class T>
  static T apply(T x, const Constants&) {
    return std::nearbyint(x);
  }
};
struct Reciprocal {
  template <class T>
  static T apply(T x, const Constants&) {
    return T(1) / x;
  }
};

#define MST_STD_FUNCTION(Name, function)           \
  struct Name {                                    \
    template <class T>                             \
    static T apply(T x, const Constants&) {        \
      return std::function(x);                     \
    }                                              \
  };
MST_STD_FUNCTION(Tanh, tanh)
MST_STD_FUNCTION(Erf, erf)
MST_STD_FUNCTION(Log, log)
MST_STD_FUNCTION(Sqrt, sqrt)
MST_STD_FUNCTION(Floor, floor)
MST_STD_FUNCTION(Ceil, ceil)
MST_STD_FUNCTION(Sin, sin)
MST_STD_FUNCTION(Cos, cos)
MST_STD_FUNCTION(Tan, tan)
MST_STD_FUNCTION(Asin, asin)
MST_STD_FUNCTION(Acos, acos)
MST_STD_FUNCTION(Atan, atan)
MST_STD_FUNCTION(Sinh, sinh)
MST_STD_FUNCTION(Cosh, cosh)
MST_STD_FUNCTION(Asinh, asinh)
MST_STD_FUNCTION(Acosh, acosh)
MST_STD_FUNCTION(Atanh, atanh)
#undef MST_STD_FUNCTION

struct Abs {
  template <class T>
  static T apply(T x, const Constants&) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else if constexpr (std::is_signed_v<T>) {
      // The least integer has no positive: it stays, as two's complement has it.
      return x < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)) : x;
    } else {
      return x;
    }
  }
};
struct Neg {
  template <class T>
  static T apply(T x, const Constants&) {
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
    }
  }
};
struct Sign {
  template <class T>
  static T apply(T x, const Constants&) {
    if constexpr (std::is_floating_point_v<T>) {
      return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x);
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<T>((x > 0) - (x < 0));
    } else {
      return static_cast<T>(x > 0);
    }
  }
};

/// Kernel of an operator whose output has its input's type.
template <class Op, ElementSet kSet>
Result<std::unique_ptr<Kernel>> make_map(const KernelSpec& spec, Constants constants) {
  if (auto refusal = refuse_element(spec, 0, kSet)) return *refusal;
  return make_function_kernel(
      [node = std::string(spec.name()), threads = spec.threads, constants](KernelArgs& args) -> Result<void> {
        const Tensor& in = args.input(0);
        Tensor& out = args.output(0);
        return on_element<kSet>(node, in.dtype(), [&](auto e) {
          using T = typename decltype(e)::Type;
          const Constants c = constants;
          map_elements(out.as_mutable<T>().data(), in.as<T>().data(), in.elements(), threads,
                       [c](T x) { return static_cast<T>(Op::apply(static_cast<Wide<T>>(x), c)); });
        });
      });
}

template <class Op>
Result<std::unique_ptr<Kernel>> make_real(const KernelSpec& spec) {
  return make_map<Op, kReal>(spec, {});
}
template <class Op>
Result<std::unique_ptr<Kernel>> make_number(const KernelSpec& spec) {
  return make_map<Op, kNumber>(spec, {});
}

Result<std::unique_ptr<Kernel>> make_leaky_relu(const KernelSpec& spec) {
  return make_map<LeakyRelu, kReal>(spec, {spec.attrs().get_float("alpha", 0.01f), 0});
}
Result<std::unique_ptr<Kernel>> make_thresholded_relu(const KernelSpec& spec) {
  return make_map<ThresholdedRelu, kReal>(spec, {spec.attrs().get_float("alpha", 1.0f), 0});
}
Result<std::unique_ptr<Kernel>> make_elu(const KernelSpec& spec) {
  return make_map<Elu, kReal>(spec, {spec.attrs().get_float("alpha", 1.0f), 0});
}
Result<std::unique_ptr<Kernel>> make_selu(const KernelSpec& spec) {
  return make_map<Selu, kReal>(spec, {spec.attrs().get_float("alpha", 1.67326319217681884765625f),
                                      spec.attrs().get_float("gamma", 1.05070102214813232421875f)});
}
Result<std::unique_ptr<Kernel>> make_celu(const KernelSpec& spec) {
  return make_map<Celu, kReal>(spec, {spec.attrs().get_float("alpha", 1.0f), 0});
}
Result<std::unique_ptr<Kernel>> make_hard_sigmoid(const KernelSpec& spec) {
  return make_map<HardSigmoid, kReal>(
      spec, {spec.attrs().get_float("alpha", 0.2f), spec.attrs().get_float("beta", 0.5f)});
}
Result<std::unique_ptr<Kernel>> make_swish(const KernelSpec& spec) {
  return make_map<Swish, kReal>(spec, {spec.attrs().get_float("alpha", 1.0f), 0});
}
Result<std::unique_ptr<Kernel>> make_shrink(const KernelSpec& spec) {
  return make_map<Shrink, kNumber>(
      spec, {spec.attrs().get_float("lambd", 0.5f), spec.attrs().get_float("bias", 0.0f)});
}
Result<std::unique_ptr<Kernel>> make_gelu(const KernelSpec& spec) {
  const std::string approximate = spec.attrs().get_string("approximate", "none");
  if (approximate == "none") return make_map<GeluErf, kReal>(spec, {});
  if (approximate == "tanh") return make_map<GeluTanh, kReal>(spec, {});
  return unsupported_node(spec, fmt::format("approximate = \"{}\"", approximate));
}

/// Operators from reals to bool.
template <class F>
Result<std::unique_ptr<Kernel>> make_test(const KernelSpec& spec, F test) {
  if (auto refusal = refuse_element(spec, 0, kReal)) return *refusal;
  return make_function_kernel(
      [node = std::string(spec.name()), threads = spec.threads, test](KernelArgs& args) -> Result<void> {
        const Tensor& in = args.input(0);
        Tensor& out = args.output(0);
        return on_element<kReal>(node, in.dtype(), [&](auto e) {
          using T = typename decltype(e)::Type;
          map_elements(out.as_mutable<Bool8>().data(), in.as<T>().data(), in.elements(), threads,
                       [test](T x) { return Bool8(test(static_cast<Wide<T>>(x))); });
        });
      });
}
Result<std::unique_ptr<Kernel>> make_is_nan(const KernelSpec& spec) {
  return make_test(spec, [](auto x) { return x != x; });
}
Result<std::unique_ptr<Kernel>> make_is_inf(const KernelSpec& spec) {
  const bool negative = spec.attrs().get_int("detect_negative", 1) != 0;
  const bool positive = spec.attrs().get_int("detect_positive", 1) != 0;
  return make_test(spec, [negative, positive](auto x) {
    return std::isinf(x) && (x < 0 ? negative : positive);
  });
}

Result<std::unique_ptr<Kernel>> make_not(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kBool)) return *refusal;
  return make_function_kernel([threads = spec.threads](KernelArgs& args) {
    map_elements(args.output(0).as_mutable<Bool8>().data(), args.input(0).as<Bool8>().data(),
                 args.input(0).elements(), threads, [](Bool8 x) { return Bool8(x.raw == 0); });
  });
}
Result<std::unique_ptr<Kernel>> make_bitwise_not(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kInteger)) return *refusal;
  return make_function_kernel(
      [node = std::string(spec.name()), threads = spec.threads](KernelArgs& args) -> Result<void> {
        return on_element<kInteger>(node, args.input(0).dtype(), [&](auto e) {
          using T = typename decltype(e)::Type;
          map_elements(args.output(0).as_mutable<T>().data(), args.input(0).as<T>().data(),
                       args.input(0).elements(), threads, [](T x) { return static_cast<T>(~x); });
        });
      });
}

/// Clip: bounds are attributes before operator set 11, inputs after; NaN stays NaN, and where the bounds
/// cross, the upper one wins.
Result<std::unique_ptr<Kernel>> make_clip(const KernelSpec& spec) {
  if (auto refusal = refuse_element(spec, 0, kNumber)) return *refusal;
  const bool from_attributes = spec.opset() < 11;
  const float low = spec.attrs().get_float("min", std::numeric_limits<float>::lowest());
  const float high = spec.attrs().get_float("max", std::numeric_limits<float>::max());
  return make_function_kernel([node = std::string(spec.name()), threads = spec.threads, from_attributes, low,
                               high](KernelArgs& args) -> Result<void> {
    const Tensor& in = args.input(0);
    for (std::size_t i = 1; i < 3; ++i) {
      if (from_attributes || !args.has_input(i)) continue;
      if (args.input(i).dtype() != in.dtype() || args.input(i).elements() != 1) {
        return kernel_failed(node, fmt::format("bound (input {}) must be one {}", i, dtype_name(in.dtype())));
      }
    }
    return on_element<kNumber>(node, in.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      using W = Wide<T>;
      W a = std::numeric_limits<W>::lowest(), b = std::numeric_limits<W>::max();
      if constexpr (std::is_floating_point_v<W>) {
        a = -std::numeric_limits<W>::infinity(), b = std::numeric_limits<W>::infinity();
        if (from_attributes) a = static_cast<W>(low), b = static_cast<W>(high);
      }
      if (!from_attributes && args.has_input(1)) a = static_cast<W>(args.input(1).as<T>()[0]);
      if (!from_attributes && args.has_input(2)) b = static_cast<W>(args.input(2).as<T>()[0]);
      map_elements(args.output(0).as_mutable<T>().data(), in.as<T>().data(), in.elements(), threads,
                   [a, b](T value) {
                     const W x = static_cast<W>(value);
                     const W y = x < a ? a : x;
                     return static_cast<T>(y > b ? b : y);
                   });
    });
  });
}

constexpr KernelEntry kEntries[] = {
    {"Abs", make_number<Abs>},
    {"Acos", make_real<Acos>},
    {"Acosh", make_real<Acosh>},
    {"Asin", make_real<Asin>},
    {"Asinh", make_real<Asinh>},
    {"Atan", make_real<Atan>},
    {"Atanh", make_real<Atanh>},
    {"BitwiseNot", make_bitwise_not},
    {"Ceil", make_real<Ceil>},
    {"Celu", make_celu},
    {"Clip", make_clip},
    {"Cos", make_real<Cos>},
    {"Cosh", make_real<Cosh>},
    {"Elu", make_elu},
    {"Erf", make_real<Erf>},
    {"Exp", make_real<Exp>},
    {"Floor", make_real<Floor>},
    {"Gelu", make_gelu},
    {"HardSigmoid", make_hard_sigmoid},
    {"HardSwish", make_real<HardSwish>},
    {"IsInf", make_is_inf},
    {"IsNaN", make_is_nan},
    {"LeakyRelu", make_leaky_relu},
    {"Log", make_real<Log>},
    {"Mish", make_real<Mish>},
    {"Neg", make_number<Neg>},
    {"Not", make_not},
    {"Reciprocal", make_real<Reciprocal>},
    {"Relu", make_number<Relu>},
    {"Round", make_real<Round>},
    {"Selu", make_selu},
    {"Shrink", make_shrink},
    {"Sigmoid", make_real<Sigmoid>},
    {"Sign", make_number<Sign>},
    {"Sin", make_real<Sin>},
    {"Sinh", make_real<Sinh>},
    {"Softplus", make_real<Softplus>},
    {"Softsign", make_real<Softsign>},
    {"Sqrt", make_real<Sqrt>},
    {"Swish", make_swish},
    {"Tan", make_real<Tan>},
    {"Tanh", make_real<Tanh>},
    {"ThresholdedRelu", make_thresholded_relu},
};

}  // namespace

std::span<const KernelEntry> kernels_unary() { return kEntries; }

}  // namespace millstream
