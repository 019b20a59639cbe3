// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "millstream/kernels/kernel.h"

namespace millstream {

/// cpu_kernels() plus If, Loop and Scan.
const KernelTable& kernels_with_control_flow();

}  // namespace millstream
