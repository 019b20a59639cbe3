// SPDX-License-Identifier: Apache-2.0
// The persistent streams of loaded plans: from one list when a plan is alone on its device, from a pool when plans
// share it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "millstream/core/result.h"
#include "millstream/runtime/context.h"
#include "millstream/runtime/stream_pools.h"
#include "millstream/schedule/schedule.h"

namespace millstream {

/// Its streams end with it, before the context; the plans that use them have ended.
class PlanStreams {
 public:
  enum class Plans : std::uint8_t { one, several };

  PlanStreams(Context& context, Plans plans);

  /// A stream for each of the schedule's. Errors: those of Context::create_stream, with nothing taken.
  Result<std::vector<Stream*>> acquire(std::uint32_t model, const Schedule& schedule);
  /// The model has ended.
  void release(std::uint32_t model);
  /// Streams made so far.
  std::size_t made() const { return made_; }

 private:
  std::size_t made_ = 0;
  std::unique_ptr<StreamList> list_;  // of one plan
  SharedStreams pool_;
};

}  // namespace millstream
