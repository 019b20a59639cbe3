// SPDX-License-Identifier: Apache-2.0
// Wrong use of every call of the acl interface: one table that is run (`misuse`: each cell gives its number, changes
// nothing and writes no output; of two mistakes the one that comes first in the order of checks is reported) and that
// prints docs/misuse.md (`misuse --page`).
#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "compat/src/acl/objects.h"
#include "acl/acl.h"
#include "millstream_launch.h"
#include "millstream_stream.h"

namespace millstream::acl {
namespace {

// What calls are made on. `here` is current.
struct World {
  void *here = nullptr, *there = nullptr, *stopped = nullptr;
  void *stream = nullptr, *stream_there = nullptr, *stream_stopped = nullptr;
  void* mode_set = nullptr;
  void *event = nullptr, *event_there = nullptr, *pending = nullptr, *recorded = nullptr, *later = nullptr, *latch = nullptr;
  void *silent = nullptr, *untimed = nullptr, *gate = nullptr, *pending_latch = nullptr, *dropped = nullptr;
  void *notify = nullptr, *notify_there = nullptr;
  void *device_block = nullptr, *host_block = nullptr;
  // Models with a bound stream each.
  void *building = nullptr, *building_stream = nullptr, *ended_stream = nullptr, *ready = nullptr, *ready_stream = nullptr;
  void *running = nullptr, *running_stream = nullptr, *unbound = nullptr, *unbound_stream = nullptr, *model_there = nullptr;
  void *no_stream = nullptr, *no_head = nullptr, *none_ended = nullptr;
  void *never_bound = nullptr;
  // Destroyed.
  void *old_context = nullptr, *old_stream = nullptr, *old_event = nullptr, *old_notify = nullptr, *old_model = nullptr;
  void *old_device_block = nullptr, *old_host_block = nullptr;
};

// The arguments of one call: handles, pointers and outputs in order, then numbers.
struct Arguments {
  void* at[4] = {};
  std::int64_t number[3] = {};
};

enum class Kind { context, stream, event, notify, model, device_block, host_block, output, pointer, function };

struct Parameter {
  const char* name;
  Kind kind;
  bool may_be_null = false;
};

// A bad value or a wrong phase.
struct Case {
  std::string what;
  int code;
  std::function<void(const World&, Arguments&)> set;
};

struct Call {
  const char* name;
  std::vector<Parameter> parameters;
  std::vector<std::int64_t> numbers;  // good ones
  std::function<aclError(const Arguments&)> call;
  std::vector<Case> cases = {};
  bool needs_context = true;
  bool of_model = false;              // of another context: 107004
  bool any_event = false;             // the event may be another context's
  int submits = -1;                   // the parameter that is the stream of a submit
};

aclrtHostFunc host_function(void* p) { return reinterpret_cast<aclrtHostFunc>(p); }
void nothing(void*) {}
int kernel(const void*) { return 0; }
int failing(const void*) { return 1; }

std::vector<Call> table() {
  using A = const Arguments&;
  using K = Kind;
  const auto number = [](int slot, std::int64_t value) { return [=](const World&, Arguments& a) { a.number[slot] = value; }; };
  const auto arg = [](int slot, void* World::*what) { return [=](const World& w, Arguments& a) { a.at[slot] = w.*what; }; };
  const auto two = [](void* World::*first, void* World::*second) {
    return [=](const World& w, Arguments& a) {
      a.at[0] = w.*first;
      a.at[1] = w.*second;
    };
  };
  const auto other_pair = [](void* World::*first, void* World::*second) {
    return [=](const World& w, Arguments& a) {
      a.at[1] = w.*first;
      a.at[2] = w.*second;
    };
  };
  const Parameter stream{"stream", K::stream}, any_stream{"stream", K::stream, true}, event{"event", K::event}, notify{"notify", K::notify},
      model{"modelRI", K::model};
  const auto output = [](const char* name) { return Parameter{name, K::output}; };
  const auto pointer = [](const char* name) { return Parameter{name, K::pointer}; };
  const std::vector<Case> event_flags = {{"an unknown flag bit", 107000, number(0, 0x10)}};
  const auto with = [](std::vector<Case> cases, std::vector<Case> more) {
    cases.insert(cases.end(), more.begin(), more.end());
    return cases;
  };
  const std::vector<Case> not_building = {{"the model is ready", 107000, two(&World::ready, &World::ready_stream)},
                                          {"the model is running", 107000, two(&World::running, &World::running_stream)}};
  const std::vector<Case> copies = {{"more bytes than the destination has", 107000, number(1, 9)}, {"an unknown kind", 107000, number(2, 4)}};
  const std::vector<Case> modes = {{"a mode that is not 0 or 1", 107000, number(0, 2)},
                                   {"the mode was set before", 107000, arg(0, &World::mode_set)},
                                   {"the stream is bound", 107000, arg(0, &World::ready_stream)}};
  return {
      {"aclInit", {}, {}, [](A) { return aclInit("acl.json"); }, {{"a configuration file", 207000, number(0, 0)}}, false},
      {"aclFinalize", {}, {}, [](A) { return aclFinalize(); }, {{"without aclInit", 107000, number(0, 0)}}, false},
      {"aclrtGetDeviceCount", {output("count")}, {}, [](A a) { return aclrtGetDeviceCount(static_cast<std::uint32_t*>(a.at[0])); }, {}, false},
      {"aclrtSetDevice", {}, {0}, [](A a) { return aclrtSetDevice(static_cast<int>(a.number[0])); },
       {{"a device that does not exist", 107001, number(0, 1)}, {"a negative device", 107001, number(0, -1)}}, false},
      {"aclrtGetDevice", {output("deviceId")}, {}, [](A a) { return aclrtGetDevice(static_cast<int*>(a.at[0])); }},
      {"aclrtResetDevice", {}, {0}, [](A a) { return aclrtResetDevice(static_cast<int>(a.number[0])); },
       {{"a device that is not open", 107002, number(0, 1)}, {"the last reference, with live contexts that were created", 507007, number(0, 0)}}, false},
      {"aclrtResetDeviceForce", {}, {0}, [](A a) { return aclrtResetDeviceForce(static_cast<int>(a.number[0])); },
       {{"a device that is not open", 107002, number(0, 1)}}, false},
      {"aclrtSynchronizeDevice", {}, {}, [](A) { return aclrtSynchronizeDevice(); }},
      {"aclrtDeviceGetStreamPriorityRange", {output("leastPriority"), output("greatestPriority")}, {},
       [](A a) { return aclrtDeviceGetStreamPriorityRange(static_cast<int*>(a.at[0]), static_cast<int*>(a.at[1])); }},
      {"aclrtCreateContext", {output("context")}, {0},
       [](A a) { return aclrtCreateContext(static_cast<aclrtContext*>(a.at[0]), static_cast<int>(a.number[0])); },
       {{"a device that does not exist", 107001, number(0, 1)}}, false},
      {"aclrtDestroyContext", {{"context", K::context}}, {}, [](A a) { return aclrtDestroyContext(a.at[0]); },
       {{"the primary context", 107000, arg(0, &World::here)}}},
      {"aclrtSetCurrentContext", {{"context", K::context, true}}, {}, [](A a) { return aclrtSetCurrentContext(a.at[0]); }, {}, false},
      {"aclrtGetCurrentContext", {output("context")}, {}, [](A a) { return aclrtGetCurrentContext(static_cast<aclrtContext*>(a.at[0])); }},

      {"aclrtCreateStream", {output("stream")}, {}, [](A a) { return aclrtCreateStream(static_cast<aclrtStream*>(a.at[0])); }},
      {"aclrtCreateStreamWithConfig", {output("stream")}, {0, 0},
       [](A a) {
         return aclrtCreateStreamWithConfig(static_cast<aclrtStream*>(a.at[0]), static_cast<std::uint32_t>(a.number[0]), static_cast<std::uint32_t>(a.number[1]));
       },
       {{"a priority outside the range", 107000, number(0, 8)},
        {"a negative priority", 107000, number(0, -1)},
        {"an unknown flag bit", 107000, number(1, 0x20)},
        {"ACL_STREAM_CPU_SCHEDULE", 207000, number(1, 0x10)}}},
      {"aclrtDestroyStream", {stream}, {}, [](A a) { return aclrtDestroyStream(a.at[0]); },
       {{"bound, the model is building", 107000, arg(0, &World::building_stream)},
        {"bound, the model is ready", 107000, arg(0, &World::ready_stream)},
        {"bound, the model is running", 107000, arg(0, &World::running_stream)}}},
      {"aclrtDestroyStreamForce", {stream}, {}, [](A a) { return aclrtDestroyStreamForce(a.at[0]); },
       {{"bound, the model is building", 107000, arg(0, &World::building_stream)},
        {"bound, the model is ready", 107000, arg(0, &World::ready_stream)},
        {"bound, the model is running", 107000, arg(0, &World::running_stream)}}},
      {"aclrtSynchronizeStream", {any_stream}, {}, [](A a) { return aclrtSynchronizeStream(a.at[0]); }},
      {"aclrtSynchronizeStreamWithTimeout", {any_stream}, {-1},
       [](A a) { return aclrtSynchronizeStreamWithTimeout(a.at[0], static_cast<int>(a.number[0])); },
       {{"0 ms", 107000, number(0, 0)}, {"-2 ms", 107000, number(0, -2)}}},
      {"aclrtStreamQuery", {any_stream, output("status")}, {}, [](A a) { return aclrtStreamQuery(a.at[0], static_cast<aclrtStreamStatus*>(a.at[1])); }},
      {"aclrtSetStreamFailureMode", {stream}, {1},
       [](A a) { return aclrtSetStreamFailureMode(a.at[0], static_cast<std::uint64_t>(a.number[0])); }, modes},
      {"aclrtSetStreamAttribute", {stream, pointer("value")}, {1, 1},
       [](A a) {
         aclrtStreamAttrValue value{};
         value.failureMode = static_cast<std::uint64_t>(a.number[0]);
         return aclrtSetStreamAttribute(a.at[0], static_cast<aclrtStreamAttr>(a.number[1]), a.at[1] == nullptr ? nullptr : &value);
       },
       with(modes, {{"another attribute", 207000, number(1, 2)}})},
      {"aclrtStreamAbort", {any_stream}, {}, [](A a) { return aclrtStreamAbort(a.at[0]); }, {{"the stream is bound", 107000, arg(0, &World::ready_stream)}}},
      {"aclrtLaunchHostFunc", {any_stream, {"fn", K::function}}, {}, [](A a) { return aclrtLaunchHostFunc(a.at[0], host_function(a.at[1]), nullptr); },
       {}, true, false, false, 0},

      {"aclrtCreateEvent", {output("event")}, {}, [](A a) { return aclrtCreateEvent(static_cast<aclrtEvent*>(a.at[0])); }},
      {"aclrtCreateEventWithFlag", {output("event")}, {1},
       [](A a) { return aclrtCreateEventWithFlag(static_cast<aclrtEvent*>(a.at[0]), static_cast<std::uint32_t>(a.number[0])); }, event_flags},
      {"aclrtCreateEventExWithFlag", {output("event")}, {1},
       [](A a) { return aclrtCreateEventExWithFlag(static_cast<aclrtEvent*>(a.at[0]), static_cast<std::uint32_t>(a.number[0])); }, event_flags},
      {"aclrtDestroyEvent", {event}, {}, [](A a) { return aclrtDestroyEvent(a.at[0]); }},
      {"aclrtRecordEvent", {event, any_stream}, {}, [](A a) { return aclrtRecordEvent(a.at[0], a.at[1]); }, {}, true, false, false, 1},
      {"aclrtResetEvent", {event, any_stream}, {}, [](A a) { return aclrtResetEvent(a.at[0], a.at[1]); },
       {{"an event of aclrtCreateEventExWithFlag", 107000, arg(0, &World::recorded)}}, true, false, false, 1},
      {"aclrtStreamWaitEvent", {any_stream, event}, {}, [](A a) { return aclrtStreamWaitEvent(a.at[0], a.at[1]); },
       {{"an event without ACL_EVENT_SYNC", 107000, arg(1, &World::silent)}}, true, false, true, 0},
      {"aclrtQueryEvent", {event, output("status")}, {}, [](A a) { return aclrtQueryEvent(a.at[0], static_cast<aclrtEventStatus*>(a.at[1])); }},
      {"aclrtQueryEventStatus", {event, output("status")}, {},
       [](A a) { return aclrtQueryEventStatus(a.at[0], static_cast<aclrtEventRecordedStatus*>(a.at[1])); }},
      {"aclrtSynchronizeEvent", {event}, {}, [](A a) { return aclrtSynchronizeEvent(a.at[0]); }},
      {"aclrtEventElapsedTime", {output("ms"), {"startEvent", K::event}, {"endEvent", K::event}}, {},
       [](A a) { return aclrtEventElapsedTime(static_cast<float*>(a.at[0]), a.at[1], a.at[2]); },
       {{"an event without ACL_EVENT_TIME_LINE", 107006, other_pair(&World::untimed, &World::recorded)},
        {"an event that was never recorded", 107006, other_pair(&World::recorded, &World::latch)},
        {"start recorded after end", 107007, other_pair(&World::later, &World::recorded)},
        {"a record that is pending", 507006, other_pair(&World::recorded, &World::pending)},
        {"a latch whose record is pending", 507006, other_pair(&World::recorded, &World::pending_latch)},
        {"a record that was dropped", 107023, other_pair(&World::recorded, &World::dropped)}}},
      {"aclrtCreateNotify", {output("notify")}, {0},
       [](A a) { return aclrtCreateNotify(static_cast<aclrtNotify*>(a.at[0]), static_cast<std::uint64_t>(a.number[0])); },
       {{"a flag that is not 0", 107000, number(0, 1)}}},
      {"aclrtDestroyNotify", {notify}, {}, [](A a) { return aclrtDestroyNotify(a.at[0]); }},
      {"aclrtRecordNotify", {notify, any_stream}, {}, [](A a) { return aclrtRecordNotify(a.at[0], a.at[1]); }, {}, true, false, false, 1},

      {"aclrtMalloc", {output("devPtr")}, {64, 0},
       [](A a) {
         return aclrtMalloc(static_cast<void**>(a.at[0]), static_cast<std::size_t>(a.number[0]), static_cast<aclrtMemMallocPolicy>(a.number[1]));
       },
       {{"0 bytes", 107000, number(0, 0)},
        {"an unknown policy", 107000, number(1, 3)},
        {"more than there is", 207001, number(0, std::int64_t{1} << 60)},
        {"SIZE_MAX bytes", 207001, number(0, -1)}}},
      {"aclrtFree", {{"devPtr", K::device_block}}, {}, [](A a) { return aclrtFree(a.at[0]); }},
      {"aclrtMallocHost", {output("hostPtr")}, {64}, [](A a) { return aclrtMallocHost(static_cast<void**>(a.at[0]), static_cast<std::size_t>(a.number[0])); },
       {{"0 bytes", 107000, number(0, 0)},
        {"more than there is", 207001, number(0, std::int64_t{1} << 60)},
        {"SIZE_MAX bytes", 207001, number(0, -1)}}},
      {"aclrtFreeHost", {{"hostPtr", K::host_block}}, {}, [](A a) { return aclrtFreeHost(a.at[0]); }},
      {"aclrtMemcpy", {pointer("dst"), pointer("src")}, {8, 8, 0},
       [](A a) {
         return aclrtMemcpy(a.at[0], static_cast<std::size_t>(a.number[0]), a.at[1], static_cast<std::size_t>(a.number[1]),
                            static_cast<aclrtMemcpyKind>(a.number[2]));
       },
       copies},
      {"aclrtMemcpyAsync", {pointer("dst"), pointer("src"), any_stream}, {8, 8, 0},
       [](A a) {
         return aclrtMemcpyAsync(a.at[0], static_cast<std::size_t>(a.number[0]), a.at[1], static_cast<std::size_t>(a.number[1]),
                                 static_cast<aclrtMemcpyKind>(a.number[2]), a.at[2]);
       },
       copies, true, false, false, 2},
      {"aclrtMemset", {pointer("devPtr")}, {8, 8},
       [](A a) { return aclrtMemset(a.at[0], static_cast<std::size_t>(a.number[0]), 1, static_cast<std::size_t>(a.number[1])); },
       {{"more bytes than the block has", 107000, number(1, 9)}}},
      {"aclrtMemsetAsync", {pointer("devPtr"), any_stream}, {8, 8},
       [](A a) { return aclrtMemsetAsync(a.at[0], static_cast<std::size_t>(a.number[0]), 1, static_cast<std::size_t>(a.number[1]), a.at[1]); },
       {{"more bytes than the block has", 107000, number(1, 9)}}, true, false, false, 1},

      {"aclmdlRIBuildBegin", {output("modelRI")}, {0},
       [](A a) { return aclmdlRIBuildBegin(static_cast<aclmdlRI*>(a.at[0]), static_cast<std::uint32_t>(a.number[0])); },
       {{"a flag that is not 0", 107000, number(0, 1)}}},
      {"aclmdlRIBindStream", {model, stream}, {0},
       [](A a) { return aclmdlRIBindStream(a.at[0], a.at[1], static_cast<std::uint32_t>(a.number[0])); },
       with({{"an unknown flag", 107000, number(0, 1)},
             {"a stream that is not persistent", 107000, arg(1, &World::stream)},
             {"bound to this model already", 107000, arg(1, &World::building_stream)},
             {"bound to another model", 107000, arg(1, &World::ready_stream)}},
            {{"the model is ready", 107000, arg(0, &World::ready)},
             {"the model is running", 107000, arg(0, &World::running)},
             {"a stream of the model was unbound", 107000, arg(0, &World::unbound)}}),
       true, true},
      {"aclmdlRIEndTask", {model, stream}, {}, [](A a) { return aclmdlRIEndTask(a.at[0], a.at[1]); },
       with({{"a stream of no model", 107005, arg(1, &World::never_bound)},
             {"a stream of another model", 107005, arg(1, &World::ready_stream)},
             {"ended already", 107000, arg(1, &World::ended_stream)},
             {"the stream was unbound", 107005, two(&World::unbound, &World::unbound_stream)}},
            not_building),
       true, true},
      {"aclmdlRIBuildEnd", {model}, {0},
       [](A a) { return aclmdlRIBuildEnd(a.at[0], a.number[0] == 0 ? nullptr : const_cast<std::int64_t*>(&a.number[0])); },
       {{"reserve is not null", 107000, number(0, 1)},
        {"no stream is bound", 107000, arg(0, &World::no_stream)},
        {"no stream is a head", 107000, arg(0, &World::no_head)},
        {"the tasks of no stream are ended", 107000, arg(0, &World::none_ended)},
        {"the model is ready", 107000, arg(0, &World::ready)},
        {"the model is running", 107000, arg(0, &World::running)},
        {"a stream of the model was unbound", 107000, arg(0, &World::unbound)}},
       true, true},
      {"aclmdlRIExecute", {model}, {-1}, [](A a) { return aclmdlRIExecute(a.at[0], static_cast<int>(a.number[0])); },
       {{"0 ms", 107000, number(0, 0)},
        {"-2 ms", 107000, number(0, -2)},
        {"the model is building", 107000, arg(0, &World::building)},
        {"a stream of the model was unbound", 107000, arg(0, &World::unbound)}},
       true, true},
      {"aclmdlRIExecuteAsync", {model, any_stream}, {}, [](A a) { return aclmdlRIExecuteAsync(a.at[0], a.at[1]); },
       {{"a persistent stream", 107000, arg(1, &World::never_bound)},
        {"the model is building", 107000, arg(0, &World::building)},
        {"a stream of the model was unbound", 107000, arg(0, &World::unbound)}},
       true, true},
      {"aclmdlRIUnbindStream", {model, stream}, {}, [](A a) { return aclmdlRIUnbindStream(a.at[0], a.at[1]); },
       {{"a stream of no model", 107005, arg(1, &World::never_bound)},
        {"a stream of another model", 107005, arg(1, &World::ready_stream)},
        {"unbound already", 107005, two(&World::unbound, &World::unbound_stream)}},
       true, true},
      {"aclmdlRIDestroy", {model}, {}, [](A a) { return aclmdlRIDestroy(a.at[0]); }, {}, true, true},
      {"aclrtSwitchStream", {pointer("leftValue"), pointer("rightValue"), {"trueStream", K::stream}, stream}, {0, 0, 0},
       [](A a) {
         return aclrtSwitchStream(a.at[0], static_cast<aclrtCondition>(a.number[0]), a.at[1], static_cast<aclrtCompareDataType>(a.number[1]), a.at[2],
                                  a.number[2] == 0 ? nullptr : a.at[2], a.at[3]);
       },
       {{"an unknown condition", 107000, number(0, 6)},
        {"a negative condition", 107000, number(0, -1)},
        {"an unknown data type", 107000, number(1, 2)},
        {"falseStream is not null", 107000, number(2, 1)},
        {"a stream that is not persistent", 107000, arg(3, &World::stream)},
        {"a stream of no model", 107005, arg(3, &World::never_bound)},
        {"its tasks are ended", 107000, arg(3, &World::ended_stream)},
        {"its model is ready", 107000, arg(3, &World::ready_stream)},
        {"its model is running", 107000, arg(3, &World::running_stream)},
        {"it was unbound", 107005, arg(3, &World::unbound_stream)},
        {"trueStream of no model", 107005, arg(2, &World::never_bound)},
        {"trueStream of another model", 107005, arg(2, &World::ready_stream)}}},

      {"mst_create_shared_stream", {output("stream")}, {0, 4},
       [](A a) {
         return mst_create_shared_stream(static_cast<aclrtStream*>(a.at[0]), static_cast<std::uint32_t>(a.number[0]), static_cast<std::uint32_t>(a.number[1]));
       },
       {{"a priority outside the range", 107000, number(0, 8)}, {"an unknown flag bit", 107000, number(1, 0x20)}}},
      {"mst_launch", {{"name", K::pointer}, {"body", K::function}, any_stream}, {1, 0, 0},
       [](A a) {
         return mst_launch(a.at[0] == nullptr ? nullptr : "kernel", a.at[1] == nullptr ? nullptr : kernel, static_cast<std::uint32_t>(a.number[0]),
                           a.number[2] == 0 ? nullptr : &a, static_cast<std::size_t>(a.number[1]), a.at[2]);
       },
       {{"no blocks", 107000, number(0, 0)},
        {"arguments that are null", 100000, number(1, 8)},
        {"4 GiB of arguments", 107000,
         [](const World&, Arguments& a) {
           a.number[1] = std::int64_t{1} << 32;
           a.number[2] = 1;
         }}},
       true, false, false, 2},
  };
}

// A submit to a persistent stream in each phase, or in a stopped context.
std::vector<Case> cases_of(const Call& call) {
  std::vector<Case> out = call.cases;
  if (call.submits < 0) return out;
  const auto slot = static_cast<std::size_t>(call.submits);
  const auto on = [=](void* World::*what) { return [=](const World& w, Arguments& a) { a.at[slot] = w.*what; }; };
  out.push_back({"a persistent stream of no model", 107005, on(&World::never_bound)});
  out.push_back({"its tasks are ended", 107000, on(&World::ended_stream)});
  out.push_back({"its model is ready", 107000, on(&World::ready_stream)});
  out.push_back({"its model is running", 107000, on(&World::running_stream)});
  out.push_back({"it was unbound", 107005, on(&World::unbound_stream)});
  return out;
}

void must(aclError error) { MST_CHECK(error == ACL_SUCCESS, aclGetRecentErrMsg()); }

void* stream_with(std::uint32_t flags) {
  void* s = nullptr;
  must(aclrtCreateStreamWithConfig(&s, 0, flags));
  return s;
}
void* event_with(std::uint32_t flags) {
  void* e = nullptr;
  must(aclrtCreateEventExWithFlag(&e, flags));
  return e;
}
void* model_with(void*& stream, bool finish, bool head = true, bool end = true) {
  void* m = nullptr;
  stream = stream_with(ACL_STREAM_PERSISTENT);
  must(aclmdlRIBuildBegin(&m, 0));
  must(aclmdlRIBindStream(m, stream, head ? ACL_MODEL_STREAM_FLAG_HEAD : ACL_MODEL_STREAM_FLAG_DEFAULT));
  if (end) must(aclmdlRIEndTask(m, stream));
  if (finish) must(aclmdlRIBuildEnd(m, nullptr));
  return m;
}

World make_world() {
  World w;
  must(aclrtSetDevice(0));
  must(aclrtGetCurrentContext(&w.here));
  must(aclrtCreateContext(&w.stopped, 0));
  w.stream_stopped = stream_with(0);
  must(aclrtSetStreamFailureMode(w.stream_stopped, ACL_STOP_ON_FAILURE));
  must(mst_launch("failing", failing, 1, nullptr, 0, w.stream_stopped));
  MST_CHECK(aclrtSynchronizeStream(w.stream_stopped) == 507015, aclGetRecentErrMsg());

  must(aclrtCreateContext(&w.there, 0));
  w.stream_there = stream_with(0);
  w.event_there = event_with(9);
  must(aclrtCreateNotify(&w.notify_there, 0));
  must(aclmdlRIBuildBegin(&w.model_there, 0));
  must(aclrtCreateContext(&w.old_context, 0));
  must(aclrtDestroyContext(w.old_context));

  must(aclrtSetCurrentContext(w.here));
  w.stream = stream_with(0);
  w.mode_set = stream_with(0);
  must(aclrtSetStreamFailureMode(w.mode_set, ACL_CONTINUE_ON_FAILURE));
  w.event = event_with(9);
  w.recorded = event_with(9);
  w.later = event_with(9);
  w.pending = event_with(9);
  w.silent = event_with(ACL_EVENT_TIME_LINE);
  w.untimed = event_with(ACL_EVENT_SYNC);
  must(aclrtCreateEvent(&w.latch));
  must(aclrtCreateEvent(&w.gate));
  must(aclrtCreateNotify(&w.notify, 0));
  must(aclrtRecordEvent(w.recorded, w.stream));
  must(mst_launch("kernel", kernel, 1, nullptr, 0, w.stream));
  must(aclrtRecordEvent(w.later, w.stream));
  must(aclrtSynchronizeStream(w.stream));
  void* const waiting = stream_with(0);
  must(aclrtStreamWaitEvent(waiting, w.gate));
  must(aclrtRecordEvent(w.pending, waiting));
  must(aclrtCreateEvent(&w.pending_latch));
  must(aclrtRecordEvent(w.pending_latch, waiting));
  void* const aborted = stream_with(0);
  w.dropped = event_with(9);
  must(aclrtStreamWaitEvent(aborted, w.gate));
  must(aclrtRecordEvent(w.dropped, aborted));
  must(aclrtStreamAbort(aborted));
  must(aclrtMalloc(&w.device_block, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  must(aclrtMallocHost(&w.host_block, 64));

  w.building = model_with(w.building_stream, false, true, false);
  w.ended_stream = stream_with(ACL_STREAM_PERSISTENT);
  must(aclmdlRIBindStream(w.building, w.ended_stream, ACL_MODEL_STREAM_FLAG_DEFAULT));
  must(aclmdlRIEndTask(w.building, w.ended_stream));
  w.ready = model_with(w.ready_stream, true);
  must(aclmdlRIBuildBegin(&w.running, 0));
  w.running_stream = stream_with(ACL_STREAM_PERSISTENT);
  must(aclmdlRIBindStream(w.running, w.running_stream, ACL_MODEL_STREAM_FLAG_HEAD));
  must(aclrtStreamWaitEvent(w.running_stream, w.gate));
  must(aclmdlRIEndTask(w.running, w.running_stream));
  must(aclmdlRIBuildEnd(w.running, nullptr));
  must(aclmdlRIExecuteAsync(w.running, stream_with(0)));
  w.unbound = model_with(w.unbound_stream, true);
  must(aclmdlRIUnbindStream(w.unbound, w.unbound_stream));
  void* s = nullptr;
  must(aclmdlRIBuildBegin(&w.no_stream, 0));
  w.no_head = model_with(s, false, false, true);
  w.none_ended = model_with(s, false, true, false);
  w.never_bound = stream_with(ACL_STREAM_PERSISTENT);

  // Freed last, so that nothing that lives is in their place.
  w.old_stream = stream_with(0);
  w.old_event = event_with(1);
  must(aclrtCreateNotify(&w.old_notify, 0));
  must(aclmdlRIBuildBegin(&w.old_model, 0));
  must(aclrtMalloc(&w.old_device_block, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  must(aclrtMallocHost(&w.old_host_block, 4096));
  must(aclrtDestroyStream(w.old_stream));
  must(aclrtDestroyEvent(w.old_event));
  must(aclrtDestroyNotify(w.old_notify));
  must(aclmdlRIDestroy(w.old_model));
  must(aclrtFree(w.old_device_block));
  must(aclrtFreeHost(w.old_host_block));
  return w;
}

// Everything that a call could change, as text.
std::string state() {
  std::string out;
  for (const HandleType type : {HandleType::context, HandleType::stream, HandleType::event, HandleType::notify, HandleType::model}) {
    out += fmt::format("{} {}; ", to_string(type), handles().live(type));
  }
  out += fmt::format("blocks {}\n", live_blocks());
  const std::lock_guard lock(devices().mutex);
  for (const auto& [number, open] : devices().open) {
    rt::DeviceState& d = *open.native.state();
    out += fmt::format("device {}: references {}, streams {}, notifies {}, events {} {}, models {}\n", number, open.count, d.stream_numbers.in_use(),
                       d.notify_numbers.in_use(), d.event_numbers.in_use(), d.event_ids.in_use(), d.model_numbers.in_use());
    for (const auto& context : d.live_contexts()) {
      out += fmt::format("context {}: stops {} stopped {} errors {}\n", context->number, context->stops.load(), context->stopped.load(),
                         context->errors.size());
      for (const auto& s : context->live_streams()) {
        out += fmt::format("  {}: submitted {}, mode {}, closed {}, bound {}\n", s->name(), s->lane.submitted.load(), s->mode ? 1 : 0,
                           s->closed.load(), s->bindings.size());
      }
      for (const auto& m : context->models) {
        out += fmt::format("  model {}: phase {}, asked {}", m->number, static_cast<int>(m->phase.load()), static_cast<void*>(m->last_asked.get()));
        for (const auto& b : m->bindings) out += fmt::format(", {} tasks{}", b->tape.size(), b->ended ? " ended" : "");
        out += '\n';
      }
    }
  }
  return out;
}

Arguments good(const World& w, const Call& call, unsigned char* outputs) {
  Arguments a;
  for (std::size_t i = 0; i < call.parameters.size(); ++i) {
    switch (call.parameters[i].kind) {
      case Kind::context: a.at[i] = w.there; break;
      case Kind::stream: a.at[i] = w.stream; break;
      case Kind::event: a.at[i] = w.recorded; break;
      case Kind::notify: a.at[i] = w.notify; break;
      case Kind::model: a.at[i] = w.building; break;
      case Kind::device_block: a.at[i] = w.device_block; break;
      case Kind::host_block: a.at[i] = w.host_block; break;
      case Kind::output: a.at[i] = outputs + 16 * i; break;
      case Kind::pointer: a.at[i] = w.host_block; break;
      case Kind::function: a.at[i] = reinterpret_cast<void*>(nothing); break;
    }
  }
  // What the cases of binding start from; executing, a model that could.
  const std::string name = call.name;
  if (name == "aclmdlRIBindStream") a.at[1] = w.never_bound;
  if (name == "aclmdlRIEndTask" || name == "aclmdlRIUnbindStream") a.at[1] = w.building_stream;
  if (name.rfind("aclmdlRIExecute", 0) == 0) a.at[0] = w.ready;
  if (name == "aclrtResetEvent") a.at[0] = w.latch;
  if (name == "aclrtSwitchStream") {
    a.at[2] = w.ended_stream;
    a.at[3] = w.building_stream;
  }
  for (std::size_t i = 0; i < call.numbers.size(); ++i) a.number[i] = call.numbers[i];
  return a;
}

// One mistake: what it does to the arguments, and the number it gives.
struct Mistake {
  std::string name;
  int order;       // in the order of checks
  int code;
  int slot = -1;   // the argument that it takes
  std::function<void(const World&, Arguments&)> set = nullptr;
};
enum Order { callback, null, handle, no_context, wrong_context, value };

bool is_handle(Kind k) { return k <= Kind::host_block; }

std::vector<Mistake> mistakes(const World& w, const Call& call) {
  std::vector<Mistake> out;
  static int here;
  void* const old[] = {w.old_context, w.old_stream, w.old_event, w.old_notify, w.old_model, w.old_device_block, w.old_host_block};
  void* const live[] = {w.there, w.stream, w.event, w.notify, w.building, w.device_block, w.host_block};
  void* const foreign[] = {nullptr, w.stream_there, w.event_there, w.notify_there, w.model_there};
  for (std::size_t i = 0; i < call.parameters.size(); ++i) {
    const Parameter& p = call.parameters[i];
    const auto add = [&](std::string name, int order, int code, void* value) {
      out.push_back({std::move(name), order, code, static_cast<int>(i), [i, value](const World&, Arguments& a) { a.at[i] = value; }});
    };
    if (!p.may_be_null) add(fmt::format("{} null", p.name), null, 100000, nullptr);
    if (!is_handle(p.kind)) continue;
    const auto kind = static_cast<std::size_t>(p.kind);
    for (const std::uint64_t random : {std::uint64_t{1}, std::uint64_t{0xdeadbeefcafe}, ~std::uint64_t{0}, std::uint64_t{0x0200ffff00000000},
                                       reinterpret_cast<std::uint64_t>(&here)}) {
      add(fmt::format("{} {:#x}", p.name, random), handle, 107017, reinterpret_cast<void*>(random));
    }
    add(fmt::format("{} stale", p.name), handle, 107017, old[kind]);
    for (std::size_t other = 0; other < std::size(live); ++other) {
      if (other != kind) add(fmt::format("{} of another type", p.name), handle, 107017, live[other]);
    }
    const bool context_matters = kind < std::size(foreign) && foreign[kind] != nullptr && !(call.any_event && p.kind == Kind::event);
    if (context_matters) add(fmt::format("{} of another context", p.name), wrong_context, call.of_model ? 107004 : 107003, foreign[kind]);
  }
  if (call.needs_context) {
    out.push_back({"no current context", no_context, 107002, -1, [](const World&, Arguments&) { must(aclrtSetCurrentContext(nullptr)); }});
  }
  return out;
}

class Run {
 public:
  explicit Run(const World& w) : world_(w) {}
  int failures = 0, cells = 0;

  // The call with these mistakes gives the number, and nothing has changed.
  void cell(const Call& call, const std::string& what, int code, const std::vector<const Mistake*>& mistaken, const Case* extra = nullptr) {
    unsigned char outputs[64];
    std::memset(outputs, 0xab, sizeof outputs);
    Arguments a = good(world_, call, outputs);
    if (extra != nullptr) extra->set(world_, a);
    for (const Mistake* m : mistaken) m->set(world_, a);
    check(call, what, code, a, outputs);
    must(aclrtSetCurrentContext(world_.here));
  }
  void check(const Call& call, const std::string& what, int code, const Arguments& a, const unsigned char* outputs) {
    ++cells;
    const std::string before = state();
    const aclError got = call.call(a);
    const std::string after = state();
    const std::string message = aclGetRecentErrMsg();
    const auto complain = [&](const std::string& why) {
      ++failures;
      std::cout << call.name << ", " << what << ": " << why << '\n';
    };
    if (got != code) complain(fmt::format("gives {} instead of {} ({})", got, code, message));
    if (before != after) complain("changed something:\n" + before + "->\n" + after);
    for (int i = 0; i < 64; ++i) {
      if (outputs[i] != 0xab) return complain("wrote an output");
    }
    if (got != ACL_SUCCESS && message.rfind(std::string(call.name) + ": ", 0) != 0) complain("its message is " + message);
  }

 private:
  const World& world_;
};

void run_one(Run& run, const World& w, const Call& call) {
  const std::vector<Mistake> all = mistakes(w, call);
  const std::vector<Case> cases = cases_of(call);
  for (const Mistake& m : all) run.cell(call, m.name, m.code, {&m});
  for (const Case& c : cases) run.cell(call, c.what, c.code, {}, &c);
  for (const Mistake& a : all) {
    for (const Mistake& b : all) {
      if (a.order >= b.order || (a.slot >= 0 && a.slot == b.slot)) continue;
      run.cell(call, a.name + " and " + b.name, a.code, {&a, &b});
    }
    for (const Case& c : cases) run.cell(call, a.name + " and " + c.what, c.code == 100000 && a.order != null ? c.code : a.code, {&a}, &c);
  }
}

// Every call, with good arguments and with mistakes, from a host function.
struct FromCallback {
  Run* run;
  const World* world;
  const std::vector<Call>* calls;
  std::atomic<bool> done{false};
};
void in_callback(void* p) {
  auto& f = *static_cast<FromCallback*>(p);
  for (const Call& call : *f.calls) {
    unsigned char outputs[64];
    std::memset(outputs, 0xab, sizeof outputs);
    const Arguments a = good(*f.world, call, outputs);
    f.run->check(call, "in a host function", 207006, a, outputs);
    Arguments none = a;
    for (void*& at : none.at) at = nullptr;
    f.run->check(call, "in a host function, with null", 207006, none, outputs);
  }
  f.done = true;
}

int run_table() {
  const World w = make_world();
  Run run(w);
  const std::vector<Call> calls = table();
  for (const Call& call : calls) run_one(run, w, call);

  must(aclrtSetCurrentContext(w.stopped));
  for (const Call& call : calls) {
    if (call.submits < 0) continue;
    unsigned char outputs[64];
    std::memset(outputs, 0xab, sizeof outputs);
    Arguments a = good(w, call, outputs);
    void *event = nullptr, *notify = nullptr;
    must(aclrtCreateEvent(&event));
    must(aclrtCreateNotify(&notify, 0));
    for (std::size_t i = 0; i < call.parameters.size(); ++i) {
      if (call.parameters[i].kind == Kind::stream) a.at[i] = w.stream_stopped;
      if (call.parameters[i].kind == Kind::event) a.at[i] = event;
      if (call.parameters[i].kind == Kind::notify) a.at[i] = notify;
    }
    run.check(call, "in a stopped context", 107035, a, outputs);
  }
  must(aclrtSetCurrentContext(w.here));

  FromCallback from{&run, &w, &calls};
  must(aclrtLaunchHostFunc(w.stream, in_callback, &from));
  // Only asked meanwhile: a synchronise would change the stream under the function's eyes.
  aclrtStreamStatus status;
  while (!from.done) must(aclrtStreamQuery(w.stream, &status));
  must(aclrtSynchronizeStream(w.stream));

  must(aclrtRecordEvent(w.gate, w.stream));
  must(aclrtSynchronizeDevice());
  must(aclrtResetDeviceForce(0));
  std::cout << calls.size() << " calls, " << run.cells << " cells, " << run.failures << " wrong\n";
  return run.failures == 0 ? 0 : 1;
}

std::string page() {
  std::string out =
      "# Wrong use of the acl interface\n\n"
      "Printed by `build/release/tests/misuse --page` from the table that the test runs on every back-end. A call that fails\n"
      "changes nothing, submits nothing and writes no output. The numbers' meanings: [errors.md](errors.md).\n\n"
      "Of several mistakes one is reported, the first in this order: in a host function (207006), null (100000), a handle that\n"
      "is random, stale or of another type (107017), no current context (107002), an object of another context (107003, with\n"
      "models 107004), a bad value, a wrong phase, what is not supported, what has run out, a stopped context (107035).\n\n"
      "| Call | Null | Random, stale, another type | Another context's | No context | In a host function |\n|---|---|---|---|---|---|\n";
  const auto list = [](const std::vector<std::string>& names, const std::string& code) {
    if (names.empty()) return std::string("-");
    std::string text;
    for (const std::string& n : names) text += (text.empty() ? "" : ", ") + n;
    return text + ": " + code;
  };
  for (const Call& call : table()) {
    std::vector<std::string> nulls, found, foreign;
    for (const Parameter& p : call.parameters) {
      if (!p.may_be_null) nulls.push_back(p.name);
      if (!is_handle(p.kind)) continue;
      found.push_back(p.name);
      if (p.kind != Kind::context && p.kind < Kind::device_block && !(call.any_event && p.kind == Kind::event)) foreign.push_back(p.name);
    }
    out += fmt::format("| `{}` | {} | {} | {} | {} | 207006 |\n", call.name, list(nulls, "100000"), list(found, "107017"),
                       list(foreign, call.of_model ? "107004" : "107003"), call.needs_context ? "107002" : "works");
  }
  out += "| `aclGetRecentErrMsg` | - | - | - | works | works |\n\n";
  out += "`mst_launch` is what `MST_LAUNCH` of `millstream_launch.h` calls; `mst_create_shared_stream` is in `millstream_stream.h`.\n\n| Call | Value or phase | Number |\n|---|---|---|\n";
  for (const Call& call : table()) {
    for (const Case& c : cases_of(call)) out += fmt::format("| `{}` | {} | {} |\n", call.name, c.what, c.code);
  }
  return out + "\nEvery call that submits to a stream: 107035 in a stopped context.\n";
}

std::string file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The page is what the table prints, and every declaration of the headers has a row.
int check_page(const std::string& root) {
  const std::string printed = page();
  int status = 0;
  if (file(root + "/docs/misuse.md") != printed) {
    std::cout << "docs/misuse.md is not what the table says; run: build/release/tests/misuse --page > docs/misuse.md\n";
    status = 1;
  }
  int declared = 0;
  for (const char* header : {"acl.h", "acl_rt.h"}) {
    const std::string text = file(root + "/compat/include/acl/" + header);
    const std::regex declaration(R"(\n(?:aclError |const char \*)(acl\w+)\()");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), declaration); it != std::sregex_iterator(); ++it, ++declared) {
      if (printed.find("| `" + (*it)[1].str() + "` |") != std::string::npos) continue;
      std::cout << (*it)[1].str() << " has no row\n";
      status = 1;
    }
  }
  if (declared < 50) {
    std::cout << "only " << declared << " declarations found\n";
    status = 1;
  }
  return status;
}

}  // namespace
}  // namespace millstream::acl

int main(int argc, char** argv) {
  using namespace millstream::acl;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return run_table();
  if (arguments[0] == "--page") {
    std::cout << page();
    return 0;
  }
  if (arguments[0] == "--check" && arguments.size() == 2) return check_page(arguments[1]);
  std::cerr << "misuse [--page | --check SOURCE_DIR]\n";
  return 2;
}
