// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include <cmath>
#include <optional>

#include "millstream/kernels/function_kernel.h"
#include "millstream/kernels/real.h"
#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

struct LossAttrs {
  std::string node;
  bool softmax;
  std::string reduction;
  std::optional<std::int64_t> ignored;
};

std::int64_t label_at(const Tensor& labels, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  return labels.dtype() == DType::i32 ? labels.as<std::int32_t>()[at] : labels.as<std::int64_t>()[at];
}

/// Log of the softmax over channels; x and y are [batch, classes, inner].
template <class T>
void log_softmax(const T* x, T* y, std::int64_t batch, std::int64_t classes, std::int64_t inner) {
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const T* from = x + n * classes * inner + i;
      T* to = y + n * classes * inner + i;
      T top = from[0];
      for (std::int64_t c = 1; c < classes; ++c) top = std::max(top, from[c * inner]);
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(from[c * inner] - top));
      const T shift = top + static_cast<T>(std::log(sum));
      for (std::int64_t c = 0; c < classes; ++c) to[c * inner] = from[c * inner] - shift;
    }
  }
}

template <class T>
Result<void> run_loss(const LossAttrs& attrs, KernelArgs& args) {
  const Tensor &x = args.input(0), &labels = args.input(1);
  const std::int64_t batch = x.shape()[0], classes = x.shape()[1], inner = count_of(x.shape(), 2, x.shape().size());
  const RealIn<T> in(x);
  std::optional<RealIn<T>> weights;
  if (args.has_input(2)) {
    if (args.input(2).elements() != classes || !is_real(args.input(2).dtype())) {
      return kernel_failed(attrs.node, fmt::format("weights must hold one number for each of {} classes", classes));
    }
    weights.emplace(args.input(2));
  }
  std::vector<T> own;
  const T* log_probability = in.data();
  if (attrs.softmax && x.elements() > 0) {
    own.resize(static_cast<std::size_t>(x.elements()));
    log_softmax(in.data(), own.data(), batch, classes, inner);
    log_probability = own.data();
    if (args.output_count() > 1 && args.output(1).elements() == x.elements() && is_real(args.output(1).dtype())) {
      RealOut<T> out(args.output(1));
      std::copy(own.begin(), own.end(), out.data());
    }
  }
  const bool each = attrs.reduction == "none";
  if (args.output(0).elements() != (each ? batch * inner : 1)) {
    return kernel_failed(attrs.node, "output shape does not follow from the inputs");
  }
  RealOut<T> out(args.output(0));
  double total = 0, weight_sum = 0;
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const std::int64_t at = n * inner + i, label = label_at(labels, at);
      double loss = 0;
      if (label != attrs.ignored) {
        if (label < 0 || label >= classes) {
          return kernel_failed(attrs.node, fmt::format("label {} is outside [0, {})", label, classes));
        }
        const double weight = weights ? static_cast<double>((*weights)[label]) : 1.0;
        loss = -weight * static_cast<double>(log_probability[(n * classes + label) * inner + i]);
        weight_sum += weight;
      }
      total += loss;
      if (each) out[at] = static_cast<T>(loss);
    }
  }
  if (!each) out[0] = static_cast<T>(attrs.reduction == "mean" ? total / weight_sum : total);
  return {};
}

Result<std::unique_ptr<Kernel>> make_loss(const KernelSpec& spec) {
  const DType type = spec.input_desc(0).dtype;
  if (!is_real(type)) return unsupported_node(spec, fmt::format("element type {}", dtype_name(type)));
  LossAttrs attrs{std::string(spec.name()), spec.type() == "SoftmaxCrossEntropyLoss",
                  spec.attrs().get_string("reduction", "mean"), std::nullopt};
  if (attrs.reduction != "none" && attrs.reduction != "sum" && attrs.reduction != "mean") {
    return unsupported_node(spec, fmt::format("reduction \"{}\"", attrs.reduction));
  }
  if (spec.attrs().has("ignore_index")) attrs.ignored = spec.attrs().get_int("ignore_index", 0);
  return make_function_kernel([attrs = std::move(attrs)](KernelArgs& args) -> Result<void> {
    const Tensor &x = args.input(0), &labels = args.input(1);
    if (x.shape().size() < 2 || (labels.dtype() != DType::i32 && labels.dtype() != DType::i64) ||
        labels.elements() != x.shape()[0] * count_of(x.shape(), 2, x.shape().size())) {
      return kernel_failed(attrs.node, "labels do not fit the scores");
    }
    return with_real(x.dtype(), [&](auto zero) { return run_loss<decltype(zero)>(attrs, args); });
  });
}

constexpr KernelEntry kEntries[] = {{"NegativeLogLikelihoodLoss", make_loss}, {"SoftmaxCrossEntropyLoss", make_loss}};

}  // namespace

std::span<const KernelEntry> kernels_loss() { return kEntries; }

}  // namespace millstream
