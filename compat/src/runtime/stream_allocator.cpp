// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/stream_allocator.h"

#include <algorithm>

#include "compat/src/runtime/acl_streams.h"

namespace gert {

static_assert(StreamAllocator::kMaxStreamNum == millstream::StreamList::kMost);

struct StreamAllocator::State {
  State(std::int32_t priority, std::uint32_t flags) : streams(millstream::acl_streams(aclrtCreateStreamWithConfig), {priority, flags}), shown(kMaxStreamNum) {}
  millstream::StreamList streams;
  std::mutex mutex;
  TypedContinuousVector<rtStream_t> shown;
};

StreamAllocator::StreamAllocator(int32_t priority, uint32_t flags) : state_(std::make_unique<State>(priority, flags)) {}
StreamAllocator::~StreamAllocator() = default;

TypedContinuousVector<rtStream_t>* StreamAllocator::AcquireStreams(std::size_t stream_num) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto acquired = state_->streams.acquire(stream_num);
  if (!acquired.ok()) return nullptr;
  auto& shown = state_->shown;
  if (stream_num > shown.GetSize()) {
    // Only what is new: other threads read the rest.
    std::copy(acquired->begin() + static_cast<std::ptrdiff_t>(shown.GetSize()), acquired->end(), shown.MutableData() + shown.GetSize());
    shown.SetSize(stream_num);
  }
  return &shown;
}

}  // namespace gert
