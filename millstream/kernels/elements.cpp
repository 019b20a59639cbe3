// SPDX-License-Identifier: Apache-2.0
#include "millstream/kernels/elements.h"

namespace millstream {

Result<std::vector<std::int64_t>> read_ints(std::string_view node, const Tensor& tensor) {
  std::vector<std::int64_t> out;
  const bool known = with_element<elements::kInteger | elements::kBool>(tensor.dtype(), [&](auto e) {
    using T = typename decltype(e)::Type;
    for (const T x : tensor.as<T>()) out.push_back(static_cast<std::int64_t>(x));
  });
  if (!known) {
    return kernel_failed(node, fmt::format("expected integers, have {}", dtype_name(tensor.dtype())));
  }
  return out;
}

Result<double> read_scalar(std::string_view node, const Tensor& tensor) {
  if (tensor.elements() < 1) return kernel_failed(node, "expected a scalar, have an empty tensor");
  double out = 0;
  if (!with_element<elements::kNumber | elements::kBool>(tensor.dtype(), [&](auto e) {
        using T = typename decltype(e)::Type;
        out = static_cast<double>(tensor.as<T>()[0]);
      })) {
    return wrong_element(node, tensor.dtype());
  }
  return out;
}

Result<std::size_t> resolve_axis(std::string_view node, std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) {
    return kernel_failed(node, fmt::format("axis {} is outside [-{}, {})", axis, r, r));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

}  // namespace millstream
