// SPDX-License-Identifier: Apache-2.0
// Two inputs and their variadic kin, element by element, with numpy broadcasting. Integers wrap; integer
// division truncates and a zero divisor is an error.
#include <cmath>
#include <cstring>

#include "millstream/kernels/broadcast.h"
#include "millstream/kernels/elements.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

using namespace elements;  // NOLINT: names of sets, this file only

// Integer arithmetic goes through uint64: no undefined overflow, same low bits.
template <class T>
T wrap(std::uint64_t x) {
  return static_cast<T>(x);
}
template <class T>
constexpr std::uint64_t raised(T x) {
  return static_cast<std::uint64_t>(x);
}

struct Add {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    else return wrap<T>(raised(a) + raised(b));
  }
};
struct Sub {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a - b;
    else return wrap<T>(raised(a) - raised(b));
  }
};
struct Mul {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a * b;
    else return wrap<T>(raised(a) * raised(b));
  }
};
struct Div {
  /// Integer divisors are not zero (checked before); the least integer by -1 wraps.
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else if constexpr (std::is_signed_v<T>) {
      return b == T(-1) ? wrap<T>(0 - raised(a)) : static_cast<T>(a / b);
    } else {
      return static_cast<T>(a / b);
    }
  }
};
/// The sign of the divisor, as numpy's and Python's modulo have it.
struct FloorMod {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return 0;
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    } else {
      return static_cast<T>(a % b);
    }
  }
};
/// The sign of the dividend, as C's fmod has it.
struct TruncMod {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else if constexpr (std::is_signed_v<T>) {
      return b == T(-1) ? T(0) : static_cast<T>(a % b);
    } else {
      return static_cast<T>(a % b);
    }
  }
};
/// NaN wins, as in numpy's maximum and minimum.
struct Max {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a > b || a != a ? a : b;
    else return a > b ? a : b;
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a < b || a != a ? a : b;
    else return a < b ? a : b;
  }
};
struct PRelu {
  template <class T>
  static T apply(T x, T slope) {
    if constexpr (std::is_floating_point_v<T>) return x < T(0) ? x * slope : x;
    else return x < T(0) ? wrap<T>(raised(x) * raised(slope)) : x;
  }
};
struct BitAnd {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
/// A shift by the width or more leaves nothing.
struct ShiftLeft {
  template <class T>
  static T apply(T a, T b) {
    return b >= sizeof(T) * 8 ? T(0) : wrap<T>(raised(a) << b);
  }
};
struct ShiftRight {
  template <class T>
  static T apply(T a, T b) {
    return b >= sizeof(T) * 8 ? T(0) : static_cast<T>(a >> b);
  }
};

struct Equal {
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
};
struct Less {
  template <class T>
  static bool apply(T a, T b) {
    return a < b;
  }
};
struct LessOrEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterOrEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};
struct And {
  template <class T>
  static bool apply(T a, T b) {
    return a && b;
  }
};
struct Or {
  template <class T>
  static bool apply(T a, T b) {
    return a || b;
  }
};
struct Xor {
  template <class T>
  static bool apply(T a, T b) {
    return static_cast<bool>(a) != static_cast<bool>(b);
  }
};

/// bool operands read as C++ bool, the small floats as float.
template <class T>
using Operand = std::conditional_t<std::is_same_v<T, Bool8>, bool, Wide<T>>;

bool holds_zero(const Tensor& t) {
  bool found = false;
  with_element<kInteger>(t.dtype(), [&](auto e) {
    using T = typename decltype(e)::Type;
    for (const T x : t.as<T>()) found = found || x == 0;
  });
  return found;
}

/// Output type is the operands' own, or bool when `apply` says so.
template <class Op, ElementSet kSet, bool kDivides = false>
Result<std::unique_ptr<Kernel>> make_pair(const KernelSpec& spec) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (auto refusal = refuse_element(spec, i, kSet)) return *refusal;
  }
  return make_function_kernel(
      [node = std::string(spec.name()), threads = spec.threads](KernelArgs& args) -> Result<void> {
        const Tensor& a = args.input(0);
        const Tensor& b = args.input(1);
        Tensor& out = args.output(0);
        if (a.dtype() != b.dtype()) {
          return kernel_failed(node, fmt::format("operands have element types {} and {}", dtype_name(a.dtype()),
                                                 dtype_name(b.dtype())));
        }
        if (kDivides && holds_zero(b)) return kernel_failed(node, "integer division by zero");
        MST_TRY(const StridedLoop<3> loop, binary_loop(node, out.shape(), a.shape(), b.shape()));
        return on_element<kSet>(node, a.dtype(), [&](auto e) {
          using T = typename decltype(e)::Type;
          using W = Operand<T>;
          using R = std::conditional_t<std::is_same_v<decltype(Op::apply(W(), W())), bool>, Bool8, T>;
          map_elements(loop, out.as_mutable<R>().data(), a.as<T>().data(), b.as<T>().data(), threads,
                       [](T x, T y) { return static_cast<R>(Op::apply(static_cast<W>(x), static_cast<W>(y))); });
        });
      });
}

Result<std::unique_ptr<Kernel>> make_mod(const KernelSpec& spec) {
  if (spec.attrs().get_int("fmod", 0) != 0) return make_pair<TruncMod, kNumber, true>(spec);
  return make_pair<FloorMod, kNumber, true>(spec);
}
Result<std::unique_ptr<Kernel>> make_bit_shift(const KernelSpec& spec) {
  const std::string direction = spec.attrs().get_string("direction", "");
  if (direction == "LEFT") return make_pair<ShiftLeft, kUnsigned>(spec);
  if (direction == "RIGHT") return make_pair<ShiftRight, kUnsigned>(spec);
  return unsupported_node(spec, fmt::format("direction = \"{}\"", direction));
}

/// Left to right; one operand is a copy.
template <class Op, ElementSet kSet, bool kMean = false>
Result<std::unique_ptr<Kernel>> make_variadic(const KernelSpec& spec) {
  for (std::size_t i = 0; i < spec.input_count(); ++i) {
    if (auto refusal = refuse_element(spec, i, kSet)) return *refusal;
  }
  return make_function_kernel([node = std::string(spec.name()),
                               threads = spec.threads](KernelArgs& args) -> Result<void> {
    Tensor& out = args.output(0);
    const std::size_t count = args.input_count();
    for (std::size_t i = 0; i < count; ++i) {
      if (args.input(i).dtype() != out.dtype()) return wrong_element(node, args.input(i).dtype());
    }
    {
      if (count == 1) {
        std::memcpy(out.mutable_bytes(), args.input(0).bytes(), out.byte_size());
        return {};
      }
      for (std::size_t i = 1; i < count; ++i) {
        const Tensor& a = i == 1 ? args.input(0) : out;
        const Tensor& b = args.input(i);
        MST_TRY(const StridedLoop<3> loop, binary_loop(node, out.shape(), a.shape(), b.shape()));
        const bool last = i + 1 == count;
        MST_TRY_VOID(on_element<kSet>(node, a.dtype(), [&](auto e) {
          using T = typename decltype(e)::Type;
          using W = Wide<T>;
          const W divisor = kMean && last ? static_cast<W>(count) : W(1);
          map_elements(loop, out.as_mutable<T>().data(), a.as<T>().data(), b.as<T>().data(), threads,
                       [divisor](T x, T y) {
                         const W v = Op::apply(static_cast<W>(x), static_cast<W>(y));
                         return static_cast<T>(kMean ? v / divisor : v);
                       });
        }));
      }
      return {};
    }
  });
}

template <class T>
T integer_power(T base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == T(1)) return T(1);
    if constexpr (std::is_signed_v<T>) {
      if (base == T(-1)) return exponent % 2 == 0 ? T(1) : T(-1);
    }
    return T(0);
  }
  std::uint64_t result = 1, square = raised(base);
  for (std::uint64_t e = static_cast<std::uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1u) != 0) result *= square;
    square *= square;
  }
  return wrap<T>(result);
}

/// Base and exponent may differ in type; the result has the base's. Integer powers of integers wrap; a
/// real power of an integer is truncated.
Result<std::unique_ptr<Kernel>> make_pow(const KernelSpec& spec) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (auto refusal = refuse_element(spec, i, kNumber)) return *refusal;
  }
  return make_function_kernel([node = std::string(spec.name()),
                               threads = spec.threads](KernelArgs& args) -> Result<void> {
    const Tensor& a = args.input(0);
    const Tensor& b = args.input(1);
    Tensor& out = args.output(0);
    MST_TRY(const StridedLoop<3> loop, binary_loop(node, out.shape(), a.shape(), b.shape()));
    const bool integers = contains(kInteger, a.dtype()) && contains(kInteger, b.dtype());
    std::vector<double> real;
    std::vector<std::int64_t> whole;
    if (integers) {
      MST_TRY(std::vector<std::int64_t> read, read_ints(node, b));
      whole = std::move(read);
    } else if (!with_element<kNumber>(b.dtype(), [&](auto e) {
                 using T = typename decltype(e)::Type;
                 for (const T x : b.as<T>()) real.push_back(static_cast<double>(x));
               })) {
      return wrong_element(node, b.dtype());
    }
    return on_element<kNumber>(node, a.dtype(), [&](auto e) {
      using T = typename decltype(e)::Type;
      using W = Wide<T>;
      T* to = out.as_mutable<T>().data();
      const T* from = a.as<T>().data();
      if constexpr (std::is_floating_point_v<W>) {
        // Squares and cubes are what networks ask for; they need no library call.
        if (real.size() == 1 && a.elements() == out.elements() && (real[0] == 2 || real[0] == 3)) {
          const bool cube = real[0] == 3;
          map_elements(to, from, a.elements(), threads, [cube](T x) {
            const W v = static_cast<W>(x);
            return static_cast<T>(cube ? v * v * v : v * v);
          });
          return;
        }
        map_elements(loop, to, from, real.data(), threads, [](T x, double y) {
          return static_cast<T>(std::pow(static_cast<W>(x), static_cast<W>(y)));
        });
      } else if (integers) {
        map_elements(loop, to, from, whole.data(), threads,
                     [](T x, std::int64_t y) { return integer_power(x, y); });
      } else {
        map_elements(loop, to, from, real.data(), threads, [](T x, double y) {
          const double v = std::pow(static_cast<double>(x), y);
          return v >= -9.2e18 && v <= 9.2e18 ? static_cast<T>(static_cast<std::int64_t>(v)) : T(0);
        });
      }
    });
  });
}

constexpr KernelEntry kEntries[] = {
    {"Add", make_pair<Add, kNumber>},
    {"And", make_pair<And, kBool>},
    {"BitShift", make_bit_shift},
    {"BitwiseAnd", make_pair<BitAnd, kInteger>},
    {"BitwiseOr", make_pair<BitOr, kInteger>},
    {"BitwiseXor", make_pair<BitXor, kInteger>},
    {"Div", make_pair<Div, kNumber, true>},
    {"Equal", make_pair<Equal, kNumber | kBool>},
    {"Greater", make_pair<Greater, kNumber>},
    {"GreaterOrEqual", make_pair<GreaterOrEqual, kNumber>},
    {"Less", make_pair<Less, kNumber>},
    {"LessOrEqual", make_pair<LessOrEqual, kNumber>},
    {"Max", make_variadic<Max, kNumber>},
    {"Mean", make_variadic<Add, kReal, true>},
    {"Min", make_variadic<Min, kNumber>},
    {"Mod", make_mod},
    {"Mul", make_pair<Mul, kNumber>},
    {"Or", make_pair<Or, kBool>},
    {"PRelu", make_pair<PRelu, kNumber>},
    {"Pow", make_pow},
    {"Sub", make_pair<Sub, kNumber>},
    {"Sum", make_variadic<Add, kReal>},
    {"Xor", make_pair<Xor, kBool>},
};

}  // namespace

std::span<const KernelEntry> kernels_binary() { return kEntries; }

}  // namespace millstream
