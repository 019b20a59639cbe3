// SPDX-License-Identifier: Apache-2.0
// C++11 takes the header; MST_LAUNCH is not there, mst_launch is.
#include "millstream_launch.h"

#ifdef MST_LAUNCH
#error "MST_LAUNCH needs C++17"
#endif
aclError launch_from_old_code(mst_kernel_body body, aclrtStream stream);
aclError launch_from_old_code(mst_kernel_body body, aclrtStream stream) { return mst_launch("body", body, 1, nullptr, 0, stream); }
