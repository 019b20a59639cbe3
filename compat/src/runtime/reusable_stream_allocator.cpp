// SPDX-License-Identifier: Apache-2.0
#include "runtime/v1/graph/load/model_manager/reusable_stream_allocator.h"

#include "compat/src/runtime/acl_streams.h"
#include "millstream_stream.h"

namespace ge {

struct ReusableStreamAllocator::State {
  millstream::SharedStreams streams{millstream::acl_streams(mst_create_shared_stream)};
};

ReusableStreamAllocator::ReusableStreamAllocator() : state_(std::make_unique<State>()) {}
ReusableStreamAllocator::~ReusableStreamAllocator() = default;
ReusableStreamAllocator* ReusableStreamAllocator::Create() { return new ReusableStreamAllocator; }

Status ReusableStreamAllocator::GetOrCreateRtStream(aclrtStream& stream, uint32_t rt_model_id, int32_t priority, uint32_t stream_flag,
                                                    uint32_t task_num) {
  const auto acquired = state_->streams.acquire({rt_model_id, {priority, stream_flag}, task_num});
  if (!acquired.ok()) return FAILED;
  stream = *acquired;
  return SUCCESS;
}

Status ReusableStreamAllocator::DestroyStream(aclrtStream stream, bool is_force_destroy) {
  return state_->streams.release(stream, is_force_destroy).ok() ? SUCCESS : FAILED;
}

void ReusableStreamAllocator::ReleaseModel(uint32_t rt_model_id) { state_->streams.release_model(rt_model_id); }

}  // namespace ge
