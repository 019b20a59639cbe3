// SPDX-License-Identifier: Apache-2.0
#include <acl/acl.h>
#include <acl/acl_base.h>
#include <acl/acl_rt.h>
#include <millstream_launch.h>
#include <millstream_stream.h>

#include <cstdio>

void add(int *sum, int n) { *sum += n; }

int main() {
  int sum = 0;
  aclrtStream stream = nullptr;
  aclrtSetDevice(0);
  aclrtCreateStream(&stream);
  MST_LAUNCH(add, 4, nullptr, stream)(&sum, 3);
  const aclError done = aclrtSynchronizeStream(stream);
  std::printf("%d %d %d\n", done, sum, mst_create_shared_stream(nullptr, 0, 0));
  return aclrtResetDevice(0);
}
