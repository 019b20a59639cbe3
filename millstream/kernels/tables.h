// SPDX-License-Identifier: Apache-2.0
// The kernel tables, one a file; table.cpp joins them. A new kernel is one row in its file.
#pragma once

#include <span>

#include "millstream/kernels/kernel.h"

namespace millstream {

std::span<const KernelEntry> kernels_unary();
std::span<const KernelEntry> kernels_binary();
std::span<const KernelEntry> kernels_movement();
std::span<const KernelEntry> kernels_cast();
std::span<const KernelEntry> kernels_reduce();
std::span<const KernelEntry> kernels_pad();
std::span<const KernelEntry> kernels_indexing();
std::span<const KernelEntry> kernels_selection();
std::span<const KernelEntry> kernels_generator();
std::span<const KernelEntry> kernels_quantize();
std::span<const KernelEntry> kernels_det();

std::span<const KernelEntry> kernels_conv();
std::span<const KernelEntry> kernels_matmul();
std::span<const KernelEntry> kernels_norm();
std::span<const KernelEntry> kernels_pool();
std::span<const KernelEntry> kernels_softmax();
std::span<const KernelEntry> kernels_recurrent();
std::span<const KernelEntry> kernels_resize();
std::span<const KernelEntry> kernels_quant_nn();
std::span<const KernelEntry> kernels_loss();
std::span<const KernelEntry> kernels_grid();
std::span<const KernelEntry> kernels_roi();
std::span<const KernelEntry> kernels_signal();
std::span<const KernelEntry> kernels_attention();
std::span<const KernelEntry> kernels_einsum();

}  // namespace millstream
