// SPDX-License-Identifier: Apache-2.0
// Waiting for one stream.
#include <acl/acl.h>
#include <millstream_launch.h>

#include <cstdio>

void add(int *sum, int n) { *sum += n; }

int main() {
  int sum = 0;
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  for (int i = 1; i <= 100; ++i) MST_LAUNCH(add, 1, nullptr, stream)(&sum, i);
  // Blocks until all tasks of the stream are done.
  aclrtSynchronizeStream(stream);
  aclrtStreamStatus status;
  aclrtStreamQuery(stream, &status);
  std::printf("%d %s\n", sum, status == ACL_STREAM_STATUS_COMPLETE ? "complete" : "not ready");
  aclrtDestroyStream(stream);
}
