// SPDX-License-Identifier: Apache-2.0
#include "millstream/backend/plan_streams.h"

namespace millstream {
namespace {

StreamSource source_of(Context& context, std::size_t& made) {
  return {[&context, &made](StreamKind) -> Result<StreamHandle> {
            MST_TRY(Stream stream, context.create_stream(StreamOptions{.persistent = true, .huge = true, .shared = true}));
            ++made;
            return static_cast<StreamHandle>(new Stream(std::move(stream)));
          },
          [](StreamHandle stream) { delete static_cast<Stream*>(stream); }};
}

}  // namespace

PlanStreams::PlanStreams(Context& context, Plans plans) : pool_(source_of(context, made_)) {
  if (plans == Plans::one) list_ = std::make_unique<StreamList>(source_of(context, made_), StreamKind{});
}

Result<std::vector<Stream*>> PlanStreams::acquire(std::uint32_t model, const Schedule& schedule) {
  std::vector<Stream*> out;
  out.reserve(schedule.streams.size());
  if (list_ && schedule.streams.size() <= StreamList::kMost) {
    MST_TRY(const std::span<const StreamHandle> streams, list_->acquire(schedule.streams.size()));
    for (const StreamHandle s : streams) out.push_back(static_cast<Stream*>(s));
    return out;
  }
  for (const PhysicalStream& stream : schedule.streams) {
    Result<StreamHandle> taken = pool_.acquire({model, StreamKind{}, stream.tasks.size()});
    if (!taken.ok()) {
      pool_.release_model(model);
      return std::move(taken).error();
    }
    out.push_back(static_cast<Stream*>(*taken));
  }
  return out;
}

void PlanStreams::release(std::uint32_t model) { pool_.release_model(model); }

}  // namespace millstream
