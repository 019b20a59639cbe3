// SPDX-License-Identifier: Apache-2.0
// Streams that several loaded models share, none twice by one model.
#pragma once

#include <cstdint>
#include <memory>

#include "acl/acl_rt.h"
#include "ge/ge_status.h"

namespace ge {

/// Thread-safe. Streams are made in the thread's current context, by mst_create_shared_stream: a persistent one may be bound
/// to several models, which run one after the other. The destructor destroys what is left. A stream must be unbound
/// before it is destroyed, or it lives until its context ends.
class ReusableStreamAllocator {
 public:
  static ReusableStreamAllocator *Create();
  ~ReusableStreamAllocator();
  ReusableStreamAllocator(const ReusableStreamAllocator &) = delete;
  ReusableStreamAllocator &operator=(const ReusableStreamAllocator &) = delete;

  /// A stream of this priority and flag that the model does not use, the one whose tasks so far are nearest to task_num;
  /// a new one where there is none. FAILED, with nothing changed, when none can be made (aclGetRecentErrMsg says why).
  Status GetOrCreateRtStream(aclrtStream &stream, uint32_t rt_model_id, int32_t priority, uint32_t stream_flag, uint32_t task_num = 0U);
  /// One use less; the last destroys the stream, is_force_destroy does at once. FAILED for a stream that it does not have.
  Status DestroyStream(aclrtStream stream, bool is_force_destroy = false);
  /// Ends every use by a model.
  void ReleaseModel(uint32_t rt_model_id);

 private:
  ReusableStreamAllocator();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ge
