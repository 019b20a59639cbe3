// SPDX-License-Identifier: Apache-2.0
// Streams of the highest and the lowest priority: among tasks that could start, those of the higher go first. A task that
// runs is not interrupted, and no order is promised.
#include <acl/acl.h>

#include <cstdio>

int main() {
  int32_t leastPriority, greatestPriority;
  aclrtSetDevice(0);
  aclrtDeviceGetStreamPriorityRange(&leastPriority, &greatestPriority);
  aclrtStream stream_high;
  aclrtStream stream_low;
  aclError high = aclrtCreateStreamWithConfig(&stream_high, greatestPriority, ACL_STREAM_FAST_LAUNCH);
  aclError low = aclrtCreateStreamWithConfig(&stream_low, leastPriority, ACL_STREAM_FAST_LAUNCH);
  std::printf("%d to %d: %d %d\n", leastPriority, greatestPriority, high, low);
}
