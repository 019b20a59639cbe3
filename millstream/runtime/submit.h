// SPDX-License-Identifier: Apache-2.0
// What every call of the runtime begins with, and how a task gets into a stream.
#pragma once

#include <new>

#include "millstream/runtime/objects.h"

namespace millstream::rt {

/// in_callback when the calling thread runs a host function.
Result<void> enter(const char* call);
Error null_argument(const char* call, const char* what);
Error closed_handle(const char* call, const std::string& what);
/// What stopped the context. Only of one that has.
Error stopped(const char* call, ContextState& context);

/// The answer, or no_memory when the system gives none; what was taken before goes back.
template <class F>
auto with_memory(const char* call, F make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::no_memory, std::string(call) + ": the system gives no memory"};
  }
}

/// Whether the stream takes tasks. Errors: bad_handle, context_stopped.
Result<void> takes_tasks(const char* call, const StreamState& stream);
/// Puts a task into the stream; what it owns is the stream's afterwards, and released on failure. Errors: bad_handle,
/// not_bound (persistent), context_stopped, stream_full (only if it must not `block`), no_memory.
Result<void> submit(const char* call, StreamState& stream, Task& task, bool block = true);
/// A completion behind everything submitted so far; also in a stopped context. Errors: bad_handle, no_memory.
/// `last`: the stream takes no calls afterwards.
Result<Ref<Completion>> submit_marker(const char* call, StreamState& stream, bool last = false);

/// Ends a stream: drained (or its tasks dropped), out of its context. Returns what it never reported.
Result<void> end_stream(const char* call, StreamState& stream, Close how);
/// As end_stream, for every stream of the context, then the context itself.
Result<void> end_context(const char* call, ContextState& context);
/// Closed to callers; it ends when it has run what it has and no model is bound to it. For who cannot wait for that.
void let_go(StreamState& stream);
/// Streams that were let go while they had tasks or were bound, and have none and are not any more.
void sweep(ContextState& context);
/// The first unreported error of a stream (of the context if null), the rest counted in a note, all reported.
Result<void> take_error(ContextState& context, const StreamState* stream);
/// Whether the calling thread can wait for the device. Errors: in_callback.
Result<void> may_wait(const char* call, DeviceState& device);
/// Blocks until the completion is done. Errors: sync_timeout with what the stream waits for; deadlock, its host function has
/// run for callback_stall_ms; in_callback.
Result<void> wait_host(const char* call, StreamState& stream, Completion& completion, Deadline deadline);
/// Blocks until a stream that takes no more calls has run what it has.
void wait_for_end(StreamState& stream);
/// However long it takes.
void wait_until_done(DeviceState& device, Completion& completion);
/// A new stream in the context. Errors: no_more_streams, no_memory.
Result<std::shared_ptr<StreamState>> new_stream(const char* call, const std::shared_ptr<ContextState>& context, const StreamOptions& options);
Result<std::shared_ptr<ContextState>> new_context(const char* call, const std::shared_ptr<DeviceState>& device);

}  // namespace millstream::rt
