// SPDX-License-Identifier: Apache-2.0
#include "compat/src/acl/call.h"

#include <fmt/format.h>

#include "millstream/runtime/step.h"

namespace millstream::acl {
namespace {

thread_local void* current_context = nullptr;

// The thread's messages. What ends later than they, with the thread or with the process, may still make calls that fail:
// of those the number's word is kept.
thread_local const char* word_instead = nullptr;
struct Messages {
  std::string of_thread;
  std::string of_host_function;  // the thread that it runs on may be one that waits, with a message that it has not read
  ~Messages() { word_instead = ""; }
};
thread_local Messages recent;
std::string& message() { return rt::in_callback() ? recent.of_host_function : recent.of_thread; }

// Messages of the runtime begin with its own call's name, or with "DEADLOCK: " or "DEADLOCK (suspected): " and then it.
std::string without_native_call(std::string message) {
  const std::size_t begin = message.starts_with("DEADLOCK") ? message.find(": ") + 2 : 0, end = message.find(": ", begin);
  if (end == std::string::npos) return message;
  const std::string name = message.substr(begin, end - begin);
  if (name.find("::") != std::string::npos && name.find(' ') == std::string::npos) message.erase(begin, end + 2 - begin);
  return message;
}

}  // namespace

HandleTable& handles() {
  static auto* const table = new HandleTable;
  return *table;
}

Devices& devices() {
  static auto* const all = new Devices;
  return *all;
}

Result<void> not_in_callback() {
  if (!rt::in_callback()) return {};
  return Error{ErrorCode::in_callback, "called from a host function"}.help(
      "a host function must not call this interface; do it from a thread of your own after it has returned");
}

Result<void> not_null(std::initializer_list<Argument> arguments) {
  for (const Argument& a : arguments) {
    if (a.value == nullptr) return Error{ErrorCode::null_argument, fmt::format("{} is null", a.name)};
  }
  return {};
}

Error not_found(HandleType type, const void* handle) {
  return Error{ErrorCode::bad_handle, fmt::format("{} {}", handle, handles().why_not_found(handle))}.help(
      fmt::format("pass {} that is live", to_string(type)));
}

Result<Use<ContextObject>> current() {
  if (current_context != nullptr) {
    HandleTable::Pin pin = handles().find(HandleType::context, current_context);
    if (pin) return Use<ContextObject>(std::move(pin));
  }
  return Error{ErrorCode::no_context, current_context == nullptr ? "this thread has no current context"
                                                                 : "the current context of this thread was destroyed"}
      .help("aclrtSetDevice or aclrtSetCurrentContext first");
}

void make_current(void* context) { current_context = context; }

Error foreign(const char* what, const rt::ContextState& of, const ContextObject& here) {
  return Error{ErrorCode::wrong_context, fmt::format("{} belongs to context {} of device {}; current is context {} of device {}", what, of.number,
                                                     of.device.number, here.native.number(), here.native.state()->device.number)}
      .help("aclrtSetCurrentContext to the context it was made in");
}

Result<StreamUse> stream_here(const void* handle) {
  std::optional<Use<StreamObject>> named;
  if (handle != nullptr) {
    MST_TRY(named, find<StreamObject>(handle));
  }
  MST_TRY(Use<ContextObject> context, current());
  if (named) MST_TRY_VOID(belongs("the stream", *named, context));
  return StreamUse(std::move(context), std::move(named));
}

Result<Deadline> milliseconds(std::int32_t timeout) {
  if (timeout == -1) return Deadline(never);
  if (timeout > 0) return Deadline(std::chrono::milliseconds(timeout));
  return Error{ErrorCode::bad_value, fmt::format("a time-out of {} ms", timeout)}.help("-1 for ever, or more than 0");
}

aclError report(const char* call, const Error& error) noexcept {
  const ErrorCodeInfo& info = error_code_info(error.code);
  const int number = info.acl != 0 ? info.acl : error_code_info(ErrorCode::internal).acl;
  if (word_instead != nullptr) {
    word_instead = info.word.data();  // a literal
    return number;
  }
  try {
    std::string text = fmt::format("{}: {} [{} {}]", call, without_native_call(error.message), number, info.word);
    if (error.where) text += fmt::format("\n  --> {}:{}:{}", error.where->file, error.where->line, error.where->column);
    for (const Note& n : error.notes) text += fmt::format("\n  {}: {}", n.kind == Note::Kind::help ? "help" : "note", n.text);
    message() = std::move(text);
  } catch (const std::bad_alloc&) {
    message().clear();  // the number says it
  }
  return number;
}

}  // namespace millstream::acl

using namespace millstream;

const char* aclGetRecentErrMsg(void) { return acl::word_instead != nullptr ? acl::word_instead : acl::message().c_str(); }
