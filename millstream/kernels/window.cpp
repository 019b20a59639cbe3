// SPDX-License-Identifier: Apache-2.0
#include "millstream/kernels/window.h"

#include <utility>

namespace millstream {

WindowAttrs WindowAttrs::read(const Attrs& attrs) {
  return {attrs.get_ints("kernel_shape"), attrs.get_ints("strides"), attrs.get_ints("dilations"),
          attrs.get_ints("pads"), attrs.get_string("auto_pad", "NOTSET")};
}

Result<Window> WindowAttrs::resolve(std::string_view node, std::span<const std::int64_t> spatial,
                                    Dims kernel_otherwise) const {
  const std::size_t rank = spatial.size();
  Window w;
  w.kernel = kernel.empty() ? std::move(kernel_otherwise) : kernel;
  w.strides = strides.empty() ? Dims(rank, 1) : strides;
  w.dilations = dilations.empty() ? Dims(rank, 1) : dilations;
  w.begin.assign(rank, 0);
  w.end.assign(rank, 0);
  if (w.kernel.size() != rank || w.strides.size() != rank || w.dilations.size() != rank ||
      (!pads.empty() && pads.size() != 2 * rank)) {
    return kernel_failed(node, fmt::format("kernel_shape, strides, dilations or pads do not have one "
                                           "entry for each of the {} spatial dimensions",
                                           rank));
  }
  for (std::size_t d = 0; d < rank; ++d) {
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1) {
      return kernel_failed(node, "kernel_shape, strides and dilations must be at least 1");
    }
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const std::int64_t out = (spatial[d] + w.strides[d] - 1) / w.strides[d];
      const std::int64_t total =
          std::max<std::int64_t>(0, (out - 1) * w.strides[d] + w.extent(d) - spatial[d]);
      w.begin[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.end[d] = total - w.begin[d];
    } else if (auto_pad != "VALID" && !pads.empty()) {
      w.begin[d] = pads[d];
      w.end[d] = pads[rank + d];
    }
  }
  return w;
}

}  // namespace millstream
