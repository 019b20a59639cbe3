// SPDX-License-Identifier: Apache-2.0
// Streams for pools, through the acl interface.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>

#include "acl/acl.h"
#include "millstream/runtime/stream_pools.h"

namespace millstream {

/// Makes streams in the calling thread's current context, and destroys each in the context it was made in. Streams that
/// went with their device are gone already.
inline StreamSource acl_streams(aclError (*make)(aclrtStream*, std::uint32_t, std::uint32_t)) {
  const auto made_in = std::make_shared<std::map<StreamHandle, aclrtContext>>();
  const auto create = [made_in, make](StreamKind kind) -> Result<StreamHandle> {
    aclrtContext context = nullptr;
    aclrtStream stream = nullptr;
    aclError status = aclrtGetCurrentContext(&context);
    if (status == ACL_SUCCESS) status = make(&stream, static_cast<std::uint32_t>(kind.priority), kind.flags);
    if (status != ACL_SUCCESS) return Error{ErrorCode::no_more_streams, fmt::format("{}: {}", status, aclGetRecentErrMsg())};
    (*made_in)[stream] = context;
    return stream;
  };
  const auto destroy = [made_in](StreamHandle stream) {
    const auto it = made_in->find(stream);
    aclrtContext before = nullptr;
    const bool had = aclrtGetCurrentContext(&before) == ACL_SUCCESS;
    if (aclrtSetCurrentContext(it->second) == ACL_SUCCESS) {
      (void)aclrtDestroyStream(stream);  // an error of its tasks has nobody to be told
      (void)aclrtSetCurrentContext(had ? before : nullptr);
    }
    made_in->erase(it);
  };
  return {create, destroy};
}

}  // namespace millstream
