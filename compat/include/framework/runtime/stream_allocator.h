// SPDX-License-Identifier: Apache-2.0
// The streams of a loaded model: one list that grows as more are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "exe_graph/runtime/continuous_vector.h"

using rtStream_t = void *;  // an aclrtStream
#ifndef RT_STREAM_PRIORITY_DEFAULT
#define RT_STREAM_PRIORITY_DEFAULT 0
#endif
#ifndef RT_STREAM_DEFAULT
#define RT_STREAM_DEFAULT 0U
#endif

namespace gert {

/// Thread-safe. Streams are made in the thread's current context, by aclrtCreateStreamWithConfig; the destructor destroys
/// all of them.
class StreamAllocator {
 public:
  static constexpr std::size_t kMaxStreamNum = 2024U;

  explicit StreamAllocator(int32_t priority = RT_STREAM_PRIORITY_DEFAULT, uint32_t flags = RT_STREAM_DEFAULT);
  ~StreamAllocator();
  StreamAllocator(const StreamAllocator &) = delete;
  StreamAllocator &operator=(const StreamAllocator &) = delete;

  /// The list, with at least so many streams; its size is the most that were asked for so far. The same pointer, and
  /// the same data, every time. Null, with nothing changed, for more than kMaxStreamNum or when a stream cannot be made
  /// (aclGetRecentErrMsg says why).
  TypedContinuousVector<rtStream_t> *AcquireStreams(std::size_t stream_num) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gert
