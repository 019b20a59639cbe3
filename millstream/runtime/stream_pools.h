// SPDX-License-Identifier: Apache-2.0
// Where loaded plans get their device streams from: one growing list for a model alone on its device, or a
// pool that models share. Both deal in handles; who makes and destroys the streams is handed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "millstream/core/result.h"

namespace millstream {

using StreamHandle = void*;  ///< the device's; never null

struct StreamKind {
  std::int32_t priority = 0;
  std::uint32_t flags = 0;
  friend bool operator==(const StreamKind&, const StreamKind&) = default;
};

/// Makes and destroys device streams. Called under the pool's lock, one call at a time.
struct StreamSource {
  std::function<Result<StreamHandle>(StreamKind)> create;
  std::function<void(StreamHandle)> destroy;
};

/// Streams of one kind that are made once and handed out from the front: every caller shares them. Thread-safe;
/// destroys its streams. Handles and their addresses stay valid and in place while the list lives.
class StreamList {
 public:
  static constexpr std::size_t kMost = 2024;

  StreamList(StreamSource source, StreamKind kind);
  ~StreamList();
  StreamList(const StreamList&) = delete;
  StreamList& operator=(const StreamList&) = delete;

  /// The first `count` streams; only those that are missing are made. Errors: allocation_limit (E19) beyond
  /// kMost, with nothing made; what `create` says, with the streams that this call made destroyed again.
  Result<std::span<const StreamHandle>> acquire(std::size_t count);
  std::size_t size() const;

 private:
  StreamSource source_;
  StreamKind kind_;
  mutable std::mutex mutex_;
  std::vector<StreamHandle> streams_;  // capacity kMost from the start
};

/// Streams that several models share, never two uses by one model. Thread-safe; destroys what is left.
class SharedStreams {
 public:
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  /// `tasks_per_stream`: what the models of one stream may need together.
  explicit SharedStreams(StreamSource source, std::uint64_t tasks_per_stream = kNoLimit);
  ~SharedStreams();
  SharedStreams(const SharedStreams&) = delete;
  SharedStreams& operator=(const SharedStreams&) = delete;

  struct Request {
    std::uint32_t model = 0;
    StreamKind kind;
    std::uint64_t tasks = 0;  ///< that the model will run on it
  };
  /// A stream of the same kind that the model does not use and that has room, the one whose tasks are nearest to
  /// those asked for, the oldest of equals; else a new one. Errors: those of `create`, with nothing changed.
  Result<StreamHandle> acquire(const Request& request);
  /// One use less; the last destroys the stream, `force` does at once. Errors: internal, for a stream it does not
  /// have.
  Result<void> release(StreamHandle stream, bool force = false);
  /// Ends every use by a model.
  void release_model(std::uint32_t model);
  std::size_t size() const;

 private:
  struct Entry {
    StreamHandle stream;
    StreamKind kind;
    std::uint64_t tasks = 0;         // of all uses so far
    std::uint32_t uses = 0;
    std::set<std::uint32_t> models;
  };
  void drop_unused();

  StreamSource source_;
  std::uint64_t tasks_per_stream_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // oldest first
};

}  // namespace millstream
