// SPDX-License-Identifier: Apache-2.0
#include "millstream/runtime/stream_pools.h"

#include <algorithm>

#include <fmt/format.h>

namespace millstream {

StreamList::StreamList(StreamSource source, StreamKind kind) : source_(std::move(source)), kind_(kind) { streams_.reserve(kMost); }

StreamList::~StreamList() {
  for (const StreamHandle s : streams_) source_.destroy(s);
}

Result<std::span<const StreamHandle>> StreamList::acquire(std::size_t count) {
  if (count > kMost) {
    return Error{ErrorCode::allocation_limit, fmt::format("{} streams are asked for, one list holds at most {}", count, kMost)}.help(
        "compile with fewer streams, or load the parts of the model one by one");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t had = streams_.size();
  while (streams_.size() < count) {
    Result<StreamHandle> made = source_.create(kind_);
    if (!made.ok()) {
      for (; streams_.size() > had; streams_.pop_back()) source_.destroy(streams_.back());
      return std::move(made).error();
    }
    streams_.push_back(*made);
  }
  return std::span<const StreamHandle>(streams_.data(), count);
}

std::size_t StreamList::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return streams_.size();
}

SharedStreams::SharedStreams(StreamSource source, std::uint64_t tasks_per_stream)
    : source_(std::move(source)), tasks_per_stream_(tasks_per_stream) {}

SharedStreams::~SharedStreams() {
  for (const Entry& e : entries_) source_.destroy(e.stream);
}

Result<StreamHandle> SharedStreams::acquire(const Request& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry* best = nullptr;
  const auto distance = [&](const Entry& e) { return e.tasks > request.tasks ? e.tasks - request.tasks : request.tasks - e.tasks; };
  for (Entry& e : entries_) {
    if (!(e.kind == request.kind) || e.models.count(request.model) != 0) continue;
    if (e.tasks > tasks_per_stream_ || request.tasks > tasks_per_stream_ - e.tasks) continue;
    if (best == nullptr || distance(e) < distance(*best)) best = &e;
  }
  if (best == nullptr) {
    MST_TRY(const StreamHandle made, source_.create(request.kind));
    entries_.push_back(Entry{made, request.kind, 0, 0, {}});
    best = &entries_.back();
  }
  best->tasks += request.tasks;
  ++best->uses;
  best->models.insert(request.model);
  return best->stream;
}

Result<void> SharedStreams::release(StreamHandle stream, bool force) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.stream == stream; });
  if (found == entries_.end()) return Error{ErrorCode::internal, "a stream is released that the pool does not have"};
  found->uses = force ? 0 : found->uses - 1;
  drop_unused();
  return {};
}

void SharedStreams::release_model(std::uint32_t model) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Entry& e : entries_) {
    if (e.models.erase(model) != 0) --e.uses;
  }
  drop_unused();
}

void SharedStreams::drop_unused() {
  for (const Entry& e : entries_) {
    if (e.uses == 0) source_.destroy(e.stream);
  }
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), [](const Entry& e) { return e.uses == 0; }), entries_.end());
}

std::size_t SharedStreams::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace millstream
