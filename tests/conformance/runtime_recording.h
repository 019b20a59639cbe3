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

}  // namespace millstream
