/* SPDX-License-Identifier: Apache-2.0 */
/* The headers are C11: compiled with -std=c11 -pedantic-errors, and called. */
#include "acl/acl.h"
#include "millstream_launch.h"

int acl_calls_from_c(void);

static int body(const void *arguments) { return *(const int *)arguments; }

int acl_calls_from_c(void) {
  aclrtStream stream = 0;
  const int ok = ACL_SUCCESS, argument = 0;
  if (aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH) != ok) return 1;
  if (mst_launch("body", body, 2, &argument, sizeof argument, stream) != ok) return 2;
  /* A null pointer, in C too. */
  if (aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, ACL_CONTINUE_ON_FAILURE) != ACL_ERROR_INVALID_PARAM) return 3;
  if (aclrtSynchronizeStream(stream) != ok) return 4;
  return aclrtDestroyStream(stream);
}
