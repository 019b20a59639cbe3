// SPDX-License-Identifier: Apache-2.0
// Waiting for every stream of the current context.
#include <acl/acl.h>
#include <millstream_launch.h>

#include <cstdio>

void add(int *sum, int n) { *sum += n; }

int main() {
  int sum = 0, other = 0;
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  for (int i = 1; i <= 100; ++i) MST_LAUNCH(add, 1, nullptr, stream)(&sum, i);
  MST_LAUNCH(add, 1, nullptr, nullptr)(&other, 7);
  // Blocks until the device has done both.
  aclrtSynchronizeDevice();
  std::printf("%d %d\n", sum, other);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
}
