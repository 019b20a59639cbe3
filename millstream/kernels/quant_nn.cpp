// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of 8-bit integers: MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv.
// Operands are widened to 32 bits less their zero points; sums wrap at 32 bits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "millstream/kernels/product.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"
#include "millstream/kernels/window.h"

namespace millstream {
namespace {

// Unsigned, so that overflow wraps.
using Word = std::uint32_t;

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }

std::int32_t byte_at(const Tensor& t, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  return t.dtype() == DType::u8 ? std::int32_t{t.as<std::uint8_t>()[at]} : std::int32_t{t.as<std::int8_t>()[at]};
}

/// Which zero point or scale an element of a tensor uses: (i / inner) % count.
struct Spread {
  std::int64_t count = 1;
  std::int64_t inner = 1;
};

Result<std::vector<Word>> widened(std::string_view node, const Tensor& t, const Tensor* zero, Spread spread) {
  if (!is_byte(t.dtype()) || (zero != nullptr && zero->dtype() != t.dtype())) {
    return kernel_failed(node, "operand or zero point is not an 8-bit integer of the same type");
  }
  std::vector<std::int32_t> zeros(1, 0);
  if (zero != nullptr && zero->elements() != 1 && zero->elements() != spread.count) {
    return kernel_failed(node, fmt::format("zero point holds {} numbers, not 1 or {}", zero->elements(), spread.count));
  }
  if (zero != nullptr) {
    zeros.clear();
    for (std::int64_t i = 0; i < zero->elements(); ++i) zeros.push_back(byte_at(*zero, i));
  }
  const auto count = static_cast<std::int64_t>(zeros.size());
  std::vector<Word> out(static_cast<std::size_t>(t.elements()));
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    out[static_cast<std::size_t>(i)] = static_cast<Word>(
        byte_at(t, i) - zeros[static_cast<std::size_t>(count == 1 ? 0 : i / spread.inner % count)]);
  }
  return out;
}

const Tensor* optional_input(KernelArgs& args, std::size_t i) { return args.has_input(i) ? &args.input(i) : nullptr; }

Result<std::vector<double>> scales_of(std::string_view node, const Tensor& t, std::int64_t count) {
  if (!is_real(t.dtype()) || (t.elements() != 1 && t.elements() != count)) {
    return kernel_failed(node, fmt::format("scale must hold 1 or {} floating-point numbers", count));
  }
  const RealIn<double> in(t);
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(in[t.elements() == 1 ? 0 : i]);
  return out;
}

/// y[i] = saturate(round half to even(sum * factor) + zero point).
struct Requantize {
  Tensor& y;
  std::int32_t zero;
  void write(std::int64_t i, Word sum, double factor) const {
    const double scaled = std::nearbyint(static_cast<double>(static_cast<std::int32_t>(sum)) * factor) + zero;
    const auto at = static_cast<std::size_t>(i);
    if (y.dtype() == DType::u8) {
      y.as_mutable<std::uint8_t>()[at] = static_cast<std::uint8_t>(std::clamp(scaled, 0.0, 255.0));
    } else {
      y.as_mutable<std::int8_t>()[at] = static_cast<std::int8_t>(std::clamp(scaled, -128.0, 127.0));
    }
  }
};

Result<Requantize> requantize(std::string_view node, Tensor& y, const Tensor& zero) {
  if (!is_byte(y.dtype()) || zero.dtype() != y.dtype() || zero.elements() != 1) {
    return kernel_failed(node, "output and its zero point must be 8-bit integers of one type");
  }
  return Requantize{y, byte_at(zero, 0)};
}

/// The 32-bit product of two byte tensors; zero points by row of a and by column of b.
Result<std::vector<Word>> integer_matmul(std::string_view node, const Tensor& a, const Tensor* a_zero, const Tensor& b,
                                         const Tensor* b_zero, std::int64_t elements, int threads) {
  MST_TRY(const ProductShape shape, matmul_shape(node, a.shape(), b.shape()));
  if (count_of(shape.dst) != elements) return kernel_failed(node, "output shape does not follow from the inputs");
  const std::int64_t rows = a.shape().size() < 2 ? 1 : a.shape()[a.shape().size() - 2];
  MST_TRY(const std::vector<Word> wide_a, widened(node, a, a_zero, {rows, a.shape().back()}));
  MST_TRY(const std::vector<Word> wide_b, widened(node, b, b_zero, {b.shape().back(), 1}));
  std::vector<Word> sums(static_cast<std::size_t>(elements));
  plain_product<Word, Word>(shape, wide_a.data(), wide_b.data(), sums.data(), threads);
  return sums;
}

Result<std::unique_ptr<Kernel>> make_matmul_integer(const KernelSpec& spec) {
  if (!is_byte(spec.input_desc(0).dtype) || !is_byte(spec.input_desc(1).dtype)) {
    return unsupported_node(spec, "operands are not 8-bit integers");
  }
  return make_function_kernel(
      [node = std::string(spec.name()), threads = std::max(1, spec.threads)](KernelArgs& args) -> Result<void> {
        MST_TRY(const std::vector<Word> sums,
                integer_matmul(node, args.input(0), optional_input(args, 2), args.input(1), optional_input(args, 3),
                               args.output(0).elements(), threads));
        std::copy(sums.begin(), sums.end(), args.output(0).as_mutable<Word>().begin());
        return {};
      });
}

Result<std::unique_ptr<Kernel>> make_qlinear_matmul(const KernelSpec& spec) {
  if (!is_byte(spec.input_desc(0).dtype) || !is_byte(spec.input_desc(3).dtype)) {
    return unsupported_node(spec, "operands are not 8-bit integers");
  }
  // The operator's text saturates, the conformance data of the int8 form wraps: neither is taken as right.
  if (spec.input_desc(7).dtype == DType::i8) {
    return unsupported_node(spec, "int8 output: its overflow (saturate or wrap) is contradictory in the standard");
  }
  return make_function_kernel(
      [node = std::string(spec.name()), threads = std::max(1, spec.threads)](KernelArgs& args) -> Result<void> {
        const Tensor &a = args.input(0), &b = args.input(3);
        Tensor& y = args.output(0);
        MST_TRY(const std::vector<Word> sums,
                integer_matmul(node, a, &args.input(2), b, &args.input(5), y.elements(), threads));
        const std::int64_t rows = a.shape().size() < 2 ? 1 : a.shape()[a.shape().size() - 2];
        const std::int64_t columns = b.shape().size() < 2 ? 1 : b.shape().back();
        MST_TRY(const std::vector<double> a_scale, scales_of(node, args.input(1), rows));
        MST_TRY(const std::vector<double> b_scale, scales_of(node, args.input(4), columns));
        MST_TRY(const std::vector<double> y_scale, scales_of(node, args.input(6), 1));
        MST_TRY(const Requantize to, requantize(node, y, args.input(7)));
        for (std::int64_t i = 0; i < y.elements(); ++i) {
          to.write(i, sums[static_cast<std::size_t>(i)],
                   a_scale[static_cast<std::size_t>(i / columns % rows)] *
                       b_scale[static_cast<std::size_t>(i % columns)] / y_scale[0]);
        }
        return {};
      });
}

struct ByteConv {
  std::string node;
  WindowAttrs window;
  std::int64_t groups;
  int threads;
};

ByteConv read_conv(const KernelSpec& spec) {
  return {std::string(spec.name()), WindowAttrs::read(spec.attrs()), spec.attrs().get_int("group", 1),
          std::max(1, spec.threads)};
}

/// The 32-bit convolution of byte tensors; the weights' zero points by output channel. Padding holds the
/// input's zero point, so it adds nothing.
Result<std::vector<Word>> integer_convolution(const ByteConv& conv, const Tensor& x, const Tensor* x_zero,
                                              const Tensor& w, const Tensor* w_zero, const Tensor* bias,
                                              const Tensor& y) {
  const std::size_t rank = x.shape().size();
  if (rank < 3 || rank > 5 || w.shape().size() != rank || y.shape().size() != rank) {
    return kernel_failed(conv.node, "only 1 to 3 spatial dimensions are supported");
  }
  const std::int64_t channels = x.shape()[1], maps = w.shape()[0];
  if (conv.groups < 1 || channels != w.shape()[1] * conv.groups || maps % conv.groups != 0 || y.shape()[1] != maps ||
      y.shape()[0] != x.shape()[0]) {
    return kernel_failed(conv.node, "channels of input, weights and output do not fit together");
  }
  if (bias != nullptr && (bias->dtype() != DType::i32 || bias->elements() != maps)) {
    return kernel_failed(conv.node, "bias must hold one int32 an output channel");
  }
  const Dims kernel(w.shape().begin() + 2, w.shape().end());
  MST_TRY(const Window window, conv.window.resolve(conv.node, x.shape().subspan(2), kernel));
  if (window.kernel != kernel) return kernel_failed(conv.node, "kernel_shape is not the weights' shape");
  MST_TRY(const std::vector<Word> wide_x, widened(conv.node, x, x_zero, {1, 1}));
  MST_TRY(const std::vector<Word> wide_w, widened(conv.node, w, w_zero, {maps, count_of(w.shape(), 1, rank)}));
  std::vector<Word> sums(static_cast<std::size_t>(y.elements()));
  direct_convolution<Word, Word>(wide_x.data(), wide_w.data(),
                                 bias == nullptr ? nullptr : bias->as<Word>().data(), sums.data(), x.shape()[0],
                                 channels, maps, conv.groups,
                                 Window3(window, x.shape().subspan(2), y.shape().subspan(2)), conv.threads);
  return sums;
}

Result<std::unique_ptr<Kernel>> make_conv_integer(const KernelSpec& spec) {
  if (!is_byte(spec.input_desc(0).dtype) || !is_byte(spec.input_desc(1).dtype)) {
    return unsupported_node(spec, "operands are not 8-bit integers");
  }
  return make_function_kernel([conv = read_conv(spec)](KernelArgs& args) -> Result<void> {
    MST_TRY(const std::vector<Word> sums,
            integer_convolution(conv, args.input(0), optional_input(args, 2), args.input(1), optional_input(args, 3),
                                nullptr, args.output(0)));
    std::copy(sums.begin(), sums.end(), args.output(0).as_mutable<Word>().begin());
    return {};
  });
}

Result<std::unique_ptr<Kernel>> make_qlinear_conv(const KernelSpec& spec) {
  if (!is_byte(spec.input_desc(0).dtype) || !is_byte(spec.input_desc(3).dtype)) {
    return unsupported_node(spec, "operands are not 8-bit integers");
  }
  return make_function_kernel([conv = read_conv(spec)](KernelArgs& args) -> Result<void> {
    Tensor& y = args.output(0);
    MST_TRY(const std::vector<Word> sums,
            integer_convolution(conv, args.input(0), &args.input(2), args.input(3), &args.input(5),
                                optional_input(args, 8), y));
    const std::int64_t maps = args.input(3).shape()[0], size = count_of(y.shape(), 2, y.shape().size());
    MST_TRY(const std::vector<double> x_scale, scales_of(conv.node, args.input(1), 1));
    MST_TRY(const std::vector<double> w_scale, scales_of(conv.node, args.input(4), maps));
    MST_TRY(const std::vector<double> y_scale, scales_of(conv.node, args.input(6), 1));
    MST_TRY(const Requantize to, requantize(conv.node, y, args.input(7)));
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      to.write(i, sums[static_cast<std::size_t>(i)],
               x_scale[0] * w_scale[static_cast<std::size_t>(i / size % maps)] / y_scale[0]);
    }
    return {};
  });
}

constexpr KernelEntry kEntries[] = {
    {"ConvInteger", make_conv_integer},
    {"MatMulInteger", make_matmul_integer},
    {"QLinearConv", make_qlinear_conv},
    {"QLinearMatMul", make_qlinear_matmul},
};

}  // namespace

std::span<const KernelEntry> kernels_quant_nn() { return kEntries; }

}  // namespace millstream
