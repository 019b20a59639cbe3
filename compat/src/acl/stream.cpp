// SPDX-License-Identifier: Apache-2.0
// Streams of acl/acl_rt.h.
#include <fmt/format.h>

#include "compat/src/acl/call.h"
#include "millstream_stream.h"

namespace millstream::acl {
namespace {

constexpr std::uint32_t kKnownFlags =
    ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE;

Result<void> create(aclrtStream* stream, std::optional<std::uint32_t> priority, std::uint32_t flags, bool shared = false) {
  MST_TRY_VOID(not_null({{stream, "stream"}}));
  MST_TRY(auto context, current());
  if ((flags & ~kKnownFlags) != 0) {
    return Error{ErrorCode::bad_value, fmt::format("flag {:#x} has unknown bits {:#x}", flags, flags & ~kKnownFlags)}.help(
        fmt::format("ACL_STREAM_... bits are {:#x}", kKnownFlags));
  }
  const Profile& profile = context->native.state()->device.profile;
  StreamOptions options;
  if (priority) {
    const auto wanted = static_cast<std::int32_t>(*priority);  // the range is of int32_t
    if (wanted < profile.greatest_priority || wanted > profile.least_priority) {
      return Error{ErrorCode::bad_value, fmt::format("priority {} is outside {} (greatest) to {} (least)", wanted, profile.greatest_priority,
                                                     profile.least_priority)};
    }
    options.priority = wanted;
  }
  if ((flags & ACL_STREAM_CPU_SCHEDULE) != 0) {
    return Error{ErrorCode::unsupported, "no back-end has streams that a device's own CPU schedules"}.help("leave ACL_STREAM_CPU_SCHEDULE out");
  }
  options.fast_launch = (flags & ACL_STREAM_FAST_LAUNCH) != 0;
  options.fast_sync = (flags & ACL_STREAM_FAST_SYNC) != 0;
  options.persistent = (flags & ACL_STREAM_PERSISTENT) != 0;
  options.huge = (flags & ACL_STREAM_HUGE) != 0;
  options.shared = shared;
  MST_TRY(Stream native, context->native.create_stream(options));
  MST_TRY(*stream, publish<StreamObject>(context, std::move(native)));
  return {};
}

Result<void> destroy(aclrtStream stream, Close how) {
  MST_TRY_VOID(not_null({{stream, "stream (the default one, which ends with its context)"}}));
  MST_TRY(auto object, find<StreamObject>(stream));
  MST_TRY(auto context, current());
  MST_TRY_VOID(belongs("the stream", object, context));
  Result<void> done = object->native.close(how);
  const bool closed = object->native.state()->closed.load(std::memory_order_acquire);
  if (!closed || (!done.ok() && done.error().code == ErrorCode::bad_handle)) return done;  // refused, or another thread's
  unpublish(std::move(object), context);
  if (!done.ok()) return Error(done.error()).note("the stream was destroyed");
  return {};
}

// A stream whose mode may be set: the default stream's only where the profile says so.
Result<StreamUse> stream_with_mode(aclrtStream stream) {
  if (stream == nullptr) {
    const auto context = current();
    if (!context.ok() || !(*context)->native.state()->device.profile.default_stream_failure_mode) {
      return Error{ErrorCode::null_argument, "stream is null (the default stream keeps its mode)"};
    }
  }
  return stream_here(stream);
}

Result<void> set_mode(const StreamUse& stream, std::uint64_t mode) {
  if (mode > 1) return Error{ErrorCode::bad_value, fmt::format("failure mode {}", mode)}.help("ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE");
  return stream->set_failure_mode(static_cast<FailureMode>(mode));
}

}  // namespace
}  // namespace millstream::acl

using namespace millstream;
using namespace millstream::acl;

aclError aclrtCreateStream(aclrtStream* stream) {
  return run("aclrtCreateStream", [&] { return create(stream, std::nullopt, 0); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return run("aclrtCreateStreamWithConfig", [&] { return create(stream, priority, flag); });
}

aclError mst_create_shared_stream(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return run("mst_create_shared_stream", [&] { return create(stream, priority, flag, true); });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return run("aclrtDestroyStream", [&] { return destroy(stream, Close::drain); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return run("aclrtDestroyStreamForce", [&] { return destroy(stream, Close::drop); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return run("aclrtSynchronizeStream", [&]() -> Result<void> {
    MST_TRY(const auto s, stream_here(stream));
    return s->synchronize();
  });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return run("aclrtSynchronizeStreamWithTimeout", [&]() -> Result<void> {
    MST_TRY(const auto s, stream_here(stream));
    MST_TRY(const Deadline deadline, milliseconds(timeout));
    return s->synchronize(deadline);
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return run("aclrtStreamQuery", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{status, "status"}}));
    MST_TRY(const auto s, stream_here(stream));
    MST_TRY(const bool complete, s->query());
    *status = complete ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  return run("aclrtSetStreamFailureMode", [&]() -> Result<void> {
    MST_TRY(const auto s, stream_with_mode(stream));
    return set_mode(s, mode);
  });
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue* value) {
  return run("aclrtSetStreamAttribute", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{value, "value (a mode is passed in an aclrtStreamAttrValue, by address)"}}));
    MST_TRY(const auto s, stream_with_mode(stream));
    const int attribute = number_of(stmAttrType);
    if (attribute == ACL_STREAM_ATTR_FAILURE_MODE) return set_mode(s, value->failureMode);
    return Error{ErrorCode::unsupported, fmt::format("stream attribute {}", attribute)}.help(
        "the only one is ACL_STREAM_ATTR_FAILURE_MODE");
  });
}

aclError aclrtStreamAbort(aclrtStream stream) {
  return run("aclrtStreamAbort", [&]() -> Result<void> {
    MST_TRY(const auto s, stream_here(stream));
    return s->abort();
  });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  return run("aclrtLaunchHostFunc", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{reinterpret_cast<const void*>(fn), "fn"}}));
    MST_TRY(const auto s, stream_here(stream));
    return s->host_func(fn, args);
  });
}
