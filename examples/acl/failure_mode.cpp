// SPDX-License-Identifier: Apache-2.0
// A failure in a context that stops: nothing more runs in it.
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
  aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE);
  MST_LAUNCH(fails, 1, nullptr, stream)();
  MST_LAUNCH(add, 1, nullptr, stream)(&sum, 1);
  std::printf("%d, ", aclrtSynchronizeStream(stream));
  std::printf("%d, sum %d\n", MST_LAUNCH(add, 1, nullptr, stream)(&sum, 1), sum);
}
