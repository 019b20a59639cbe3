/* SPDX-License-Identifier: Apache-2.0 */
/* What streams of acl/acl.h can do here beyond that interface. C11 and C++. */
#pragma once

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * As aclrtCreateStreamWithConfig. If persistent, it may be bound to several models, a tape for each; they run one after
 * the other.
 */
aclError mst_create_shared_stream(aclrtStream *stream, uint32_t priority, uint32_t flag);

#ifdef __cplusplus
}
#endif
