// SPDX-License-Identifier: Apache-2.0
// A device's trace in virtual time, as other tools read it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "millstream/runtime/device.h"
#include "millstream/runtime/model_state.h"
#include "millstream/runtime/trace_export.h"

namespace millstream {
namespace {

std::vector<rt::TraceEvent> two_streams() {
  static const KernelFunction matmul{"MatMul", nullptr, 5, 0}, relu{"Relu, \"fused\"", nullptr, 2, 0};
  Profile profile;
  profile.launch_us = 1;
  Result<Device> device = Device::open_private(BackendId::sim, profile);
  MST_CHECK(device.ok(), "opens");
  Context context = device->primary();
  device->start_trace();
  Stream a = std::move(*context.create_stream()), b = std::move(*context.create_stream());
  Event e = std::move(*context.create_event(Event::Kind::snapshot));
  for (const Result<void>& r : {a.launch(matmul, {}, {}), a.record(e), b.wait(e), b.launch(relu, {}, {}), b.host_func([](void*) {}, nullptr),
                                context.synchronize()}) {
    MST_CHECK(r.ok(), "submits");
  }
  return device->take_trace();
}

TEST(TraceExport, OpSummaryHasARowForEachKernelAndHostFunction) {
  EXPECT_EQ(rt::to_op_summary_csv(two_streams(), 3),
            "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)\n"
            "3,4294967295,0,1,MatMul,MatMul,N/A,AI_CORE,0.000\t,6.000,0.000\n"
            "3,4294967295,1,2,\"Relu, \"\"fused\"\"\",\"Relu, \"\"fused\"\"\",N/A,AI_CORE,8.200\t,3.000,0.000\n"
            "3,4294967295,2,2,host function,host function,N/A,AI_CPU,11.200\t,1.000,0.000\n");
}

TEST(TraceExport, ChromeJsonHasATrackAStreamAndAnArrowARecordAndWait) {
  const auto json = nlohmann::json::parse(rt::to_chrome_json(two_streams(), 0));
  std::vector<std::string> tracks, tasks;
  int starts = 0, ends = 0;
  for (const auto& e : json["traceEvents"]) {
    if (e["name"] == "thread_name") tracks.push_back(e["args"]["name"]);
    if (e["ph"] == "X") tasks.push_back(e["name"]);
    starts += e["ph"] == "s" && e["tid"] == 1;
    ends += e["ph"] == "f" && e["tid"] == 2;
  }
  EXPECT_EQ(tracks, (std::vector<std::string>{"Stream 1", "Stream 2"}));
  EXPECT_EQ(tasks, (std::vector<std::string>{"MatMul", "record", "wait", "Relu, \"fused\"", "host function"}));
  EXPECT_EQ(starts, 1);
  EXPECT_EQ(ends, 1);
}

TEST(TraceExport, AModelsRecordsAndWaitsHaveTheirArrowsInEveryExecution) {
  static const KernelFunction step{"step", nullptr, 1, 0};
  Result<Device> device = Device::open_private(BackendId::sim, Profile());
  ASSERT_TRUE(device.ok());
  Context context = device->primary();
  device->start_trace();
  Stream a = std::move(*context.create_stream({.persistent = true})), b = std::move(*context.create_stream({.persistent = true}));
  Event e = std::move(*context.create_event(Event::Kind::snapshot));
  Model model = std::move(*context.begin_model());
  for (const Result<void>& r : {model.bind(a, StreamRole::head), model.bind(b, StreamRole::head), a.launch(step, {}, {}), a.record(e), b.wait(e),
                                b.launch(step, {}, {}), model.end_tasks(a), model.finish(), model.execute(), model.execute()}) {
    ASSERT_TRUE(r.ok()) << to_string(r.error());
  }
  const std::vector<rt::TraceEvent> trace = device->take_trace();
  const auto json = nlohmann::json::parse(rt::to_chrome_json(trace, 0));
  int steps = 0, arrows = 0;
  std::vector<int> executions;
  for (const auto& event : json["traceEvents"]) {
    arrows += event["ph"] == "f";
    if (event["ph"] != "X" || event["name"] != "step") continue;
    ++steps;
    EXPECT_EQ(event["args"]["model"], model.state()->number);
    executions.push_back(event["args"]["execution"]);
  }
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(arrows, 2);
  EXPECT_EQ(executions, (std::vector<int>{1, 1, 2, 2}));
  const std::string row = "\n0," + std::to_string(model.state()->number) + ",0,";
  EXPECT_NE(rt::to_op_summary_csv(trace, 0).find(row), std::string::npos);
}

}  // namespace
}  // namespace millstream
