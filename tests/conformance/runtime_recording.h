// SPDX-License-Identifier: Apache-2.0
// A model that a test records: streams bound to it, and what its tapes do.
#pragma once

#include "millstream/runtime/model_state.h"
#include "tests/conformance/runtime_fixture.h"

namespace millstream {

class Recording {
 public:
  explicit Recording(Context& context) : context_(context), model(std::move(*context.begin_model())) {}
  Stream bound(StreamRole role) {
    StreamOptions options;
    options.persistent = true;
    Stream s = std::move(*context_.create_stream(options));
    EXPECT_OK(model.bind(s, role));
    return s;
  }
  /// One tape ended, and the model finished.
  void finish(Stream& ended) {
    EXPECT_OK(model.end_tasks(ended));
    EXPECT_OK(model.finish());
  }

 private:
  Context& context_;

 public:
  Model model;
};

/// What tasks of a model wrote down, from any thread.
class Log {
 public:
  Result<void> launch(Stream& stream, char letter) {
    return bodies_.launch(stream, [this, letter]() -> Result<void> {
      const std::lock_guard lock(mutex_);
      text_ += letter;
      return {};
    });
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  /// And forgets it.
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  Bodies bodies_;
  std::mutex mutex_;
  std::string text_;
};

/// The stream is held by what nobody has let go, and by then the log has this text.
inline void expect_held(Stream& stream, Log& log, const std::string& text) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  do {
    EXPECT_CODE(sync_timeout, stream.synchronize(std::chrono::milliseconds(5)));
  } while (log.text() != text && std::chrono::steady_clock::now() < patience);
  EXPECT_EQ(text, log.take());
}

/// Whether it comes to be so: other threads do it soon.
inline bool comes(const std::function<bool()>& so) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!so()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Threads may be slow to come to where they are held: on cpu that is no deadlock for long.
inline Profile patient(BackendId backend) {
  Profile profile;
  if (backend == BackendId::cpu) profile.orphan_wait_ms = 20000;
  return profile;
}

}  // namespace millstream
