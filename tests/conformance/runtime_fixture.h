// SPDX-License-Identifier: Apache-2.0
// The runtime's tests, on every back-end: TEST_P(OnEveryBackend, ...) gets a device and its primary context.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "millstream/runtime/device.h"

namespace millstream {

/// Both back-ends do all that the tests ask: none may be skipped.
class NoSkips : public testing::Environment {
 public:
  void TearDown() override {
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *all.GetTestSuite(i);
      for (int k = 0; k < suite.total_test_count(); ++k) {
        const testing::TestInfo& test = *suite.GetTestInfo(k);
        EXPECT_FALSE(test.result()->Skipped()) << suite.name() << "." << test.name() << " was skipped";
      }
    }
  }
};
inline testing::Environment* const kNoSkips = testing::AddGlobalTestEnvironment(new NoSkips);

inline std::string backend_name(const testing::TestParamInfo<BackendId>& info) { return info.param == BackendId::cpu ? "cpu" : "sim"; }

class OnEveryBackend : public testing::TestWithParam<BackendId> {
 protected:
  void SetUp() override { open({}); }
  /// Opens anew with this profile.
  void open(Profile profile) {
    context.reset();
    device.reset();
    if (profile.workers == 0) profile.workers = 2;
    if (profile.orphan_wait_ms == Profile{}.orphan_wait_ms) profile.orphan_wait_ms = 50;
    Result<Device> opened = Device::open(GetParam(), 0, profile);
    ASSERT_TRUE(opened.ok()) << to_string(opened.error());
    device.emplace(std::move(*opened));
    context.emplace(device->primary());
  }
  void TearDown() override {
    context.reset();
    if (device) {
      device.reset();
    }
  }
  Stream stream(const StreamOptions& options = {}) {
    Result<Stream> s = context->create_stream(options);
    MST_CHECK(s.ok(), to_string(s.error()));
    return std::move(*s);
  }
  Event event(Event::Kind kind = Event::Kind::snapshot, EventFlags flags = {}) {
    Result<Event> e = context->create_event(kind, flags);
    MST_CHECK(e.ok(), to_string(e.error()));
    return std::move(*e);
  }

  std::optional<Device> device;
  std::optional<Context> context;
};

/// A kernel that calls a function of the test: launch(stream, [] {...}).
using Body = std::function<Result<void>()>;
inline Result<void> call_body(const KernelCall& call) {
  Body* body = nullptr;
  std::memcpy(&body, call.arguments.data(), sizeof body);
  return (*body)();
}
inline const KernelFunction kCallBody{"body", call_body, 1, 0};

/// The function must outlive the launch: the test's arena keeps it.
class Bodies {
 public:
  Result<void> launch(Stream& stream, Body body) {
    bodies_.push_back(std::make_unique<Body>(std::move(body)));
    Body* const pointer = bodies_.back().get();
    return stream.launch(kCallBody, {}, std::as_bytes(std::span(&pointer, 1)));
  }

 private:
  std::vector<std::unique_ptr<Body>> bodies_;
};

#define EXPECT_OK(expression)                                       \
  do {                                                              \
    const auto expect_ok = (expression);                            \
    EXPECT_TRUE(expect_ok.ok()) << to_string(expect_ok.error());    \
  } while (false)
#define EXPECT_CODE(wanted, expression)                                        \
  do {                                                                         \
    const auto expect_code = (expression);                                     \
    ASSERT_FALSE(expect_code.ok()) << "wanted " #wanted;                       \
    EXPECT_EQ(ErrorCode::wanted, expect_code.error().code) << to_string(expect_code.error()); \
  } while (false)

}  // namespace millstream
