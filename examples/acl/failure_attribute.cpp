// SPDX-License-Identifier: Apache-2.0
// A failure in a stream that goes on: the tasks behind it run. The mode is passed by address.
#include <acl/acl.h>
#include <millstream_launch.h>

#include <cstdio>

int fails() { return 1; }
void add(int *sum, int n) { *sum += n; }

int main() {
  int sum = 0;
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  aclrtStreamAttrValue value{};
  value.failureMode = ACL_CONTINUE_ON_FAILURE;
  aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value);
  MST_LAUNCH(fails, 1, nullptr, stream)();
  MST_LAUNCH(add, 1, nullptr, stream)(&sum, 1);
  std::printf("%d, ", aclrtSynchronizeStream(stream));
  std::printf("%d, sum %d\n", aclrtSynchronizeStream(stream), sum);
}
