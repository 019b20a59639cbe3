// SPDX-License-Identifier: Apache-2.0
// Registration of passes from a library. Header only: nothing has to be linked, and what is registered stays in the library
// until the program that loads it asks.
//
//   using namespace ge;
//   Status Move(const ConstGraphPtr& graph, StreamPassContext& context) { ... return SUCCESS; }
//   REGISTER_CUSTOM_PASS("move").CustomAllocateStreamPassFn(Move);
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../graph/ascend_string.h"
#include "../graph/gnode.h"
#include "../graph/graph.h"
#include "mst_pass_abi.h"
#include "stream_pass_context.h"

// Hidden: with g++ the statics of inline functions are otherwise one object for all libraries of a process, and one
// library's list would hold the passes of another.
namespace ge __attribute__((visibility("hidden"))) {

enum class CustomPassStage : std::uint32_t {
  kBeforeInferShape = 0,
  kAfterInferShape = 1,
  kAfterAssignLogicStream = 2,  ///< takes stream passes only
  kAfterBuiltinFusionPass = 3,
  kAfterOriginGraphOptimize = 4,
  kCompatibleInherited = 5,
  kInvalid = 6  ///< moves when a stage is added: never store it
};

using CustomPassFunc = std::function<Status(GraphPtr&, CustomPassContext&)>;
using CustomAllocateStreamPassFunc = std::function<Status(const ConstGraphPtr&, StreamPassContext&)>;

class PassRegistrationData {
 public:
  PassRegistrationData() = default;
  PassRegistrationData(std::string name) : name_(std::move(name)) {}  // NOLINT: implicit, as users expect

  /// Runs behind the built-in decision about streams; no stage needs to be named.
  PassRegistrationData& CustomAllocateStreamPassFn(const CustomAllocateStreamPassFunc& function) {
    stream_pass_ = function;
    return *this;
  }
  /// Kept, but not run: millstream runs stream passes only.
  PassRegistrationData& CustomPassFn(const CustomPassFunc& function) {
    graph_pass_ = function;
    return *this;
  }
  PassRegistrationData& Stage(CustomPassStage stage) {
    stage_ = stage;
    named_ = true;
    return *this;
  }
  std::string GetPassName() const { return name_; }
  CustomPassStage GetStage() const {
    if (named_) return stage_;
    return stream_pass_ ? CustomPassStage::kAfterAssignLogicStream : CustomPassStage::kBeforeInferShape;
  }
  CustomPassFunc GetCustomPassFn() const { return graph_pass_; }
  CustomAllocateStreamPassFunc GetCustomAllocateStreamPass() const { return stream_pass_; }

 private:
  std::string name_;
  CustomAllocateStreamPassFunc stream_pass_;
  CustomPassFunc graph_pass_;
  CustomPassStage stage_ = CustomPassStage::kInvalid;
  bool named_ = false;
};

/// From the C interface to the function that was registered, and no exception back.
struct PassThunk {
  PassRegistrationData data;
  std::string name;
  mst_pass_entry entry;

  explicit PassThunk(const PassRegistrationData& registered) : data(registered), name(registered.GetPassName()), entry() {
    entry.struct_size = sizeof entry;
    entry.stage = static_cast<std::uint32_t>(data.GetStage());
    entry.name = {name.data(), name.size()};
    entry.self = this;
    if (data.GetCustomAllocateStreamPass()) {
      entry.run = &run;
      entry.functions |= static_cast<std::uint32_t>(MST_PASS_ALLOCATES_STREAMS);
    }
    if (data.GetCustomPassFn()) entry.functions |= static_cast<std::uint32_t>(MST_PASS_EDITS_GRAPHS);
  }
  PassThunk(const PassThunk&) = delete;
  PassThunk& operator=(const PassThunk&) = delete;

  static std::int32_t run(void* self, const mst_host_api* api, const mst_graph* graph, mst_stream_ctx* ctx) noexcept {
    const PassThunk& thunk = *static_cast<const PassThunk*>(self);
    try {
      StreamPassContext context(api, ctx);
      context.SetPassName(AscendString(thunk.name));
      return static_cast<std::int32_t>(thunk.data.GetCustomAllocateStreamPass()(StreamPassContext::graph(api, graph), context));
    } catch (const std::exception& e) {
      say(api, ctx, "it threw an exception:");
      say(api, ctx, e.what());
    } catch (...) {
      say(api, ctx, "it threw something that is no std::exception");
    }
    return -1;
  }
  static void say(const mst_host_api* api, mst_stream_ctx* ctx, const char* text) { api->ctx_set_error(ctx, {text, std::strlen(text)}); }

  /// Of this library, in the order of registration.
  static std::deque<PassThunk>& all() {
    static std::deque<PassThunk> list;
    return list;
  }
  static const mst_pass_entry* entry_at(std::size_t i) noexcept { return i < all().size() ? &all()[i].entry : nullptr; }
};

class PassReceiver {
 public:
  PassReceiver(const PassRegistrationData& data) { PassThunk::all().emplace_back(data); }  // NOLINT: implicit, for the macro
};

}  // namespace ge

/// What the loading program looks up. Every file that registers passes has it; the linker keeps one.
extern "C" __attribute__((weak, visibility("default"), used)) const mst_plugin_desc* mst_plugin_query_v1(void) {
  static mst_plugin_desc desc;
  desc.struct_size = sizeof desc;
  desc.major = MST_PASS_ABI_MAJOR;
  desc.minor = MST_PASS_ABI_MINOR;
  desc.count = ::ge::PassThunk::all().size();
  desc.entry = &::ge::PassThunk::entry_at;
  return &desc;
}

/// At namespace scope, any number in a file: REGISTER_CUSTOM_PASS("name").CustomAllocateStreamPassFn(function);
#define REGISTER_CUSTOM_PASS(name) MST_REGISTER_PASS_AT(name, __COUNTER__)
#define MST_REGISTER_PASS_AT(name, counter) MST_REGISTER_PASS_AS(name, counter)
#define MST_REGISTER_PASS_AS(name, counter) \
  static const ::ge::PassReceiver mst_pass_receiver_##counter __attribute__((unused)) = ::ge::PassRegistrationData(name)
