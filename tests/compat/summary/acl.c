/* SPDX-License-Identifier: Apache-2.0 */
#include <acl/acl.h>
#include <millstream_launch.h>
#include <millstream_stream.h>
#include <stdio.h>

static int add(const void *arguments) {
  **(int *const *)arguments += (int)mst_block_index();
  return 0;
}

int main(void) {
  int sum = 0, *argument = &sum;
  aclrtSetDevice(0);
  mst_launch("add", add, 4, &argument, sizeof argument, NULL);
  const aclError done = aclrtSynchronizeStream(NULL);
  printf("%d %d\n", done, sum);
  return aclrtResetDevice(0);
}
