// SPDX-License-Identifier: Apache-2.0
// A model instance: tasks recorded once on a persistent stream, executed twice.
#include <acl/acl.h>
#include <millstream_launch.h>

#include <cstdio>

void add(int *sum, int n) {
  *sum += n;
  std::printf("sum %d\n", *sum);
}

int main() {
  int sum = 0;
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_PERSISTENT);
  aclmdlRI modelRI;
  aclmdlRIBuildBegin(&modelRI, 0);
  aclmdlRIBindStream(modelRI, stream, ACL_MODEL_STREAM_FLAG_HEAD);
  // Recorded, not run.
  MST_LAUNCH(add, 1, nullptr, stream)(&sum, 5);
  std::printf("recorded, sum %d\n", sum);
  aclmdlRIEndTask(modelRI, stream);
  aclmdlRIBuildEnd(modelRI, nullptr);
  // Each behind what the default stream holds, and until it is over.
  aclmdlRIExecute(modelRI, -1);
  aclmdlRIExecute(modelRI, -1);
  aclmdlRIUnbindStream(modelRI, stream);
  aclrtDestroyStream(stream);
  aclmdlRIDestroy(modelRI);
}
