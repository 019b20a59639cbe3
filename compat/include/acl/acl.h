/* SPDX-License-Identifier: Apache-2.0 */
/* What a program includes. Written from public documentation, not from another header; docs/acl.md. C11 and C++. */
#pragma once

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Not needed before other calls. The path must be null or empty: no configuration is read. Twice: 107000. */
aclError aclInit(const char *configPath);
/** Without aclInit: 107000. Devices stay as they are. */
aclError aclFinalize(void);
/**
 * The last error of this thread: the call, the object, the reason, what to do. Empty if there was none. Valid until the
 * next call that fails in this thread. Where destructors at the end of a thread call, it may be the error's word alone. The
 * only call that a host function may make: there it gives a message of its own.
 */
const char *aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif
