// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan as kernels of the host. Semantics: the ONNX operator specifications. KernelArgs carries
// the node's own inputs and behind them its captures, in the order of Graph::captures.
#pragma once

#include "millstream/kernels/kernel.h"

namespace millstream {

Result<std::unique_ptr<Kernel>> make_if(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> make_loop(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> make_scan(const KernelSpec& spec);

/// Equal parts joined along a new axis; `backwards`: the first part comes last. `desc` (of one part) gives type
/// and shape when there is no part; unknown dimensions count 0. Errors: kernel when parts differ, shape.
Result<Tensor> stack(std::span<const Tensor> parts, const TensorDesc& desc, std::int64_t axis, bool backwards,
                     std::string_view node);

/// The axis of a scanned input, from 0. Errors: kernel when the tensor has no such axis or no whole bytes an element.
Result<std::size_t> scan_axis(const Tensor& t, std::int64_t axis, std::size_t k, std::string_view node);
/// Row `index` along `axis`, without that axis.
Tensor row_of(const Tensor& from, std::size_t axis, std::int64_t index);

}  // namespace millstream
