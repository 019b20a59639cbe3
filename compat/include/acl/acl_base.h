/* SPDX-License-Identifier: Apache-2.0 */
/* The status of every call. Written from public documentation, not from another header; docs/acl.md. C11 and C++. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** 0, or one of the numbers in docs/errors.md; aclGetRecentErrMsg says more. */
typedef int aclError;

enum {
  ACL_SUCCESS = 0,
  ACL_ERROR_INVALID_PARAM = 100000,
  ACL_ERROR_RT_PARAM_INVALID = 107000,
  ACL_ERROR_RT_INVALID_DEVICEID = 107001,
  ACL_ERROR_RT_CONTEXT_NULL = 107002,
  ACL_ERROR_RT_STREAM_CONTEXT = 107003,
  ACL_ERROR_RT_MODEL_CONTEXT = 107004,
  ACL_ERROR_RT_STREAM_MODEL = 107005,
  ACL_ERROR_RT_INVALID_HANDLE = 107017,
  ACL_ERROR_RT_WAIT_TIMEOUT = 107019,
  ACL_ERROR_RT_TASK_TIMEOUT = 107020,
  ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
  ACL_ERROR_RT_NO_PERMISSION = 207006,
  ACL_ERROR_RT_STREAM_TASK_FULL = 507002,
  ACL_ERROR_RT_EVENT_NOT_COMPLETE = 507006,
  ACL_ERROR_RT_CONTEXT_RELEASE_ERROR = 507007,
  ACL_ERROR_RT_MODEL_ABORT_NORMAL = 507023,
  ACL_ERROR_RT_LABEL_CONTEXT = 507031
};

#ifdef __cplusplus
}
#endif
