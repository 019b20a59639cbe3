// SPDX-License-Identifier: Apache-2.0
// What every function of the acl interface is made of. The order of checks is the same everywhere: host function,
// null arguments, handles, current context, whose context, values, and then what the runtime itself says.
#pragma once

#include <cstring>
#include <initializer_list>
#include <utility>

#include "acl/acl.h"
#include "compat/src/acl/objects.h"

namespace millstream::acl {

/// A handle's object, kept while this lives.
template <class T>
class Use {
 public:
  explicit Use(HandleTable::Pin pin) : pin_(std::move(pin)) {}
  T* operator->() const { return static_cast<T*>(pin_.object()); }
  T& operator*() const { return *static_cast<T*>(pin_.object()); }
  void* handle() const { return pin_.handle(); }
  HandleTable::Pin take() && { return std::move(pin_); }

 private:
  HandleTable::Pin pin_;
};

struct Argument {
  const void* value;
  const char* name;
};
/// An enumerator as a caller passes it, who may pass any number: C++ may not read one outside the enumeration's range.
template <class Enum>
int number_of(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}
/// Errors: null_argument, naming the first that is null.
Result<void> not_null(std::initializer_list<Argument> arguments);

Error not_found(HandleType type, const void* handle);
/// Errors: bad_handle.
template <class T>
Result<Use<T>> find(const void* handle) {
  HandleTable::Pin pin = handles().find(T::kType, handle);
  if (!pin) return not_found(T::kType, handle);
  return Use<T>(std::move(pin));
}

/// The thread's current context. Errors: no_context.
Result<Use<ContextObject>> current();
void make_current(void* context);

Error foreign(const char* what, const rt::ContextState& of, const ContextObject& here);
/// Errors: wrong_context.
template <class T>
Result<void> belongs(const char* what, const Use<T>& object, const Use<ContextObject>& context) {
  if (object->context() == context->native.state().get()) return {};
  return foreign(what, *object->context(), *context);
}

/// A stream argument: null is the default stream of the current context.
class StreamUse {
 public:
  Stream& operator*() const { return *stream_; }
  Stream* operator->() const { return stream_; }
  ContextObject& context() const { return *context_; }

 private:
  friend Result<StreamUse> stream_here(const void* handle);
  StreamUse(Use<ContextObject> context, std::optional<Use<StreamObject>> named)
      : context_(std::move(context)), named_(std::move(named)), stream_(named_ ? &(*named_)->native : &context_->default_stream) {}
  Use<ContextObject> context_;
  std::optional<Use<StreamObject>> named_;
  Stream* stream_;
};
/// Errors: bad_handle, no_context, wrong_context.
Result<StreamUse> stream_here(const void* handle);

/// A host's wait: -1 for ever, else more than 0. Errors: bad_value.
Result<Deadline> milliseconds(std::int32_t timeout);

/// Publishes what was made in the context. Errors: over_limit; no_context when another thread ends the context.
template <class T, class Native>
Result<void*> publish(Use<ContextObject>& context, Native native) {
  MST_TRY(void* const handle, handles().insert(T::kType, std::make_unique<T>(std::move(native))));
  const std::lock_guard lock(context->mutex);
  if (context->native.state()->closed.load(std::memory_order_acquire)) {
    handles().remove(handles().find(T::kType, handle));
    return Error{ErrorCode::no_context, "the current context was destroyed meanwhile"};
  }
  context->children.insert(handle);
  return handle;
}
/// The handle ends, when calls that use it have.
template <class T>
void unpublish(Use<T> object, Use<ContextObject>& context) {
  {
    const std::lock_guard lock(context->mutex);
    context->children.erase(object.handle());
  }
  handles().remove(std::move(object).take());
}

/// Sets the thread's message and returns the number.
aclError report(const char* call, const Error& error) noexcept;
Result<void> not_in_callback();

/// Runs the body unless a host function calls. Its error becomes the number, and the thread's message.
template <class Body>
aclError run(const char* call, Body body) noexcept {
  try {
    Result<void> done = not_in_callback();
    if (done.ok()) done = body();
    return done.ok() ? ACL_SUCCESS : report(call, done.error());
  } catch (const std::bad_alloc&) {
    return report(call, Error{ErrorCode::no_memory, "no memory for the call"});
  } catch (const std::exception& e) {
    return report(call, Error{ErrorCode::internal, e.what()});
  }
}

}  // namespace millstream::acl
