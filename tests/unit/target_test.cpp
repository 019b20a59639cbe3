// SPDX-License-Identifier: Apache-2.0
// Targets: built-ins, round trip, complaints with their place, engines.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "millstream/graph/text.h"
#include "millstream/target/builtin.h"
#include "millstream/target/target.h"

namespace millstream {
namespace {

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text, "t.mst");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return graph.ok() ? std::move(*graph) : Graph();
}

std::string failure(std::string_view toml) {
  const Result<Target> t = parse_target(toml, "t.toml");
  return t.ok() ? "no error" : to_string(t.error());
}

constexpr std::string_view kSmall = "name = \"t\"\n[[engine]]\nname = \"E\"\nop_types = [\"*\"]\n";

TEST(Target, EveryBuiltInReadsAndWritesBackTheSame) {
  ASSERT_EQ(builtin_targets().size(), 7u);
  for (const BuiltinTarget& b : builtin_targets()) {
    const Result<Target> t = load_target(b.name);
    ASSERT_TRUE(t.ok()) << to_string(t.error());
    EXPECT_EQ(t->name, b.name);
    const std::string text = to_toml(*t);
    const Result<Target> again = parse_target(text, "again");
    ASSERT_TRUE(again.ok()) << to_string(again.error());
    EXPECT_EQ(to_toml(*again), text);
    EXPECT_EQ(again->engines.size(), t->engines.size());
    EXPECT_EQ(again->costs.hand_off_us, t->costs.hand_off_us);
    EXPECT_EQ(again->limits.events, t->limits.events);
  }
}

TEST(Target, NpuHasTheEngineTable) {
  const Result<Target> t = load_target("npu");
  ASSERT_TRUE(t.ok());
  struct Row {
    std::string name;
    bool independent, skip, attach;
    int preference;
  };
  const Row rows[] = {{"AIcoreEngine", false, false, false, 0}, {"VectorEngine", false, false, false, 1},
                      {"DNN_VM_RTS", false, false, true, 1},    {"DNN_HCCL", true, false, false, 1},
                      {"DVPP", false, false, false, 1},         {"CMO", true, false, false, 1},
                      {"DNN_VM_AICPU_ASCEND", false, false, true, 2},
                      {"DNN_VM_AICPU", false, false, true, 3},  {"DNN_VM_GE_LOCAL", false, true, true, 9},
                      {"DNN_VM_HOST_CPU", false, true, true, 10}};
  ASSERT_EQ(t->engines.size(), std::size(rows));
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const Engine& e = t->engines[EngineId(i)];
    EXPECT_EQ(e.name, rows[i].name);
    EXPECT_EQ(e.scheduler, "TS_1") << e.name;
    EXPECT_EQ(e.independent, rows[i].independent) << e.name;
    EXPECT_EQ(e.skip, rows[i].skip) << e.name;
    EXPECT_EQ(e.attach, rows[i].attach) << e.name;
    EXPECT_EQ(e.preference, rows[i].preference) << e.name;
  }
}

TEST(Target, AComplaintNamesFileLineKeyAndWhatIsAllowed) {
  EXPECT_EQ(failure("name = \"t\"\ncolour = 1\n"),
            "error: unknown key \"colour\" in the target [E41 bad target]\n  --> t.toml:2:1\n"
            "  help: keys: name, cores, engines_in_input, like, limits, costs, tasks, device, engine");
  EXPECT_EQ(failure("name = \"t\"\n[costs]\nwait_us = -1.0\n"),
            "error: wait_us of costs must be a number in 0..1e12 (microseconds) [E41 bad target]\n"
            "  --> t.toml:3:11");
  EXPECT_NE(failure("name = \"t\"\n[costs]\nflops_per_us = 0\n").find("above 0"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[costs]\nflops_per_us = nan\n").find("above 0"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[costs]\nlaunch_us = \"1\"\n").find("a number"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[costs]\nparallel_share = 1.5\n").find("0..1"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[limits]\nstreams = 0\n").find("1.."), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[limits]\nstreams = \"many\"\n").find("none"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\ncores = 0\n").find("cores of the target"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n").find("needs 1..4096 engines"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\nengine = [1]\n").find("a list of tables"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[[engine]]\nname=\"A\"\n[[engine]]\nname=\"A\"\n").find("listed twice"),
            std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[[engine]]\nop_types=[]\n").find("has no name"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[[engine]]\nname=\"A\"\nop_types=[\"a*b\"]\n").find("may end one"),
            std::string::npos);
  EXPECT_NE(failure("name = \n").find("t.toml:1:"), std::string::npos);
  EXPECT_EQ(failure(kSmall), "no error");
}

TEST(Target, ABrokenTableHeaderOrALetterBeyondAsciiIsAnErrorNotACrash) {
  EXPECT_NE(failure("[\t").find("t.toml:1:"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\n[!]\n").find("t.toml:2:"), std::string::npos);
  EXPECT_NE(failure("# \xc9\xa1\n").find("plain ASCII"), std::string::npos);
}

TEST(Target, AnUnknownNameListsTheBuiltIns) {
  const Result<Target> t = load_target("gpu");
  ASSERT_FALSE(t.ok());
  EXPECT_EQ(to_string(t.error()),
            "error: there is no target \"gpu\": no built-in and no file has that name [E41 bad target]\n"
            "  help: built-in targets: cpu, npu, unit, a2, train, infer, edge; or give the path of a TOML file, or of an engine table (.json)");
}

TEST(Target, LimitsMayBeNone) {
  const Result<Target> t =
      parse_target("name = \"t\"\n[limits]\nevents = \"none\"\n[[engine]]\nname = \"E\"\n", "t.toml");
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->limits.events, std::numeric_limits<std::uint32_t>::max());
  EXPECT_EQ(t->limits.streams, 1024u);
}

std::string device_section(const Target& t) {
  const std::string text = to_toml(t);
  const std::size_t begin = text.find("[device]\n");
  return text.substr(begin, text.find("\n\n", begin) + 1 - begin);
}

TEST(Target, ADeviceHasTheDefaultsAndTheLatenciesOfTheCosts) {
  const Result<Target> t = parse_target(std::string("cores = 3\n[costs]\nlaunch_us = 7\nhand_off_us = 2.5\n").insert(0, "name = \"t\"\n") +
                                            "[[engine]]\nname = \"E\"\n",
                                        "t.toml");
  ASSERT_TRUE(t.ok()) << to_string(t.error());
  EXPECT_EQ(device_section(*t), R"([device]
name = "t"
devices = 1
max_streams = 2048
max_events = 65536
max_notifies = 1024
max_labels = 65535
max_models = "none"
least_priority = 7
greatest_priority = 0
tasks_per_stream = 1024
tasks_per_huge_stream = 1048576
workers = 0
host_helps = false
callback_threads = 1
event_wait_ms = 0
orphan_wait_ms = 2000
callback_stall_ms = 0
priority_age = 1000
max_tasks_per_execution = 1000000000
default_stream_failure_mode = false
launch_us = 7.0
record_us = 0.1
wait_us = 0.1
hand_off_us = 2.5
copy_bytes_per_us = 10000.0
callback_us = 1.0
switch_us = 0.2
)");
  EXPECT_EQ(device_of(*t).engine_slots, std::vector<std::uint32_t>{3});
}

TEST(Target, EveryKeyOfADeviceIsReadAndSurvivesAWriting) {
  const std::string section = R"([device]
name = "odd"
devices = 2
max_streams = 3
max_events = "none"
max_notifies = 4
max_labels = 5
max_models = 6
least_priority = 4
greatest_priority = -3
tasks_per_stream = 7
tasks_per_huge_stream = 8
workers = 9
host_helps = true
callback_threads = 10
event_wait_ms = 11
orphan_wait_ms = 12
callback_stall_ms = 13
priority_age = 14
max_tasks_per_execution = 15
default_stream_failure_mode = true
delay_seed = 16
engine_slots = [2, 1]
launch_us = 17.0
record_us = 18.0
wait_us = 19.0
hand_off_us = 20.0
copy_bytes_per_us = inf
callback_us = 21.0
switch_us = 22.0
)";
  const Result<Target> t = parse_target("name = \"t\"\n" + section + "[[engine]]\nname = \"E\"\n", "t.toml");
  ASSERT_TRUE(t.ok()) << to_string(t.error());
  EXPECT_EQ(device_section(*t), section);
  EXPECT_EQ(device_of(*t), t->device);
  EXPECT_EQ(parse_target(to_toml(*t), "again.toml")->device, t->device);
}

TEST(Target, ADeviceOutOfRangeIsRefusedAtItsPlace) {
  const auto device = [](std::string_view line) { return failure(std::string(kSmall) + "[device]\n" + std::string(line) + "\n"); };
  EXPECT_EQ(device("engine_slots = [1, 0]"),
            "error: engine_slots of device must be a list of whole numbers in 1..65536 [E41 bad target]\n  --> t.toml:6:20");
  EXPECT_EQ(device("least_priority = 8"),
            "error: least_priority of device must be such that least_priority is 0..7 above greatest_priority [E41 bad target]\n"
            "  --> t.toml:6:18");
  EXPECT_NE(device("greatest_priority = 8").find("0..7 above"), std::string::npos);
  EXPECT_NE(device("greatest_priority = -1").find("greatest_priority of device"), std::string::npos);
  EXPECT_NE(device("engine_slots = 1").find("a list of at most 256"), std::string::npos);
  EXPECT_NE(device("workers = 4097").find("0..4096"), std::string::npos);
  EXPECT_NE(device("callback_threads = 0").find("1..1024"), std::string::npos);
  EXPECT_NE(device("max_streams = -1").find("\"none\"") , std::string::npos);
  EXPECT_NE(device("delay_seed = -1").find("0.."), std::string::npos);
  EXPECT_NE(device("copy_bytes_per_us = 0").find("above 0"), std::string::npos);
  EXPECT_NE(device("switch_us = -0.5").find("0..1e12"), std::string::npos);
  EXPECT_NE(device("host_helps = 1").find("true or false"), std::string::npos);
  EXPECT_NE(device("streams = 1").find("unknown key \"streams\" in device"), std::string::npos);
  EXPECT_NE(failure("name = \"t\"\ndevice = 1\n").find("device of the target must be a table"), std::string::npos);
}

TEST(Target, ATargetLikeABuiltInChangesOnlyTheKeysThatItHas) {
  const Result<Target> t = parse_target(
      "name = \"mine\"\nlike = \"npu\"\n[limits]\nevents = 9\n[tasks]\nHcomReduce = 8\nRelu = 2\n[costs]\nwait_us = 4\n", "t.toml");
  ASSERT_TRUE(t.ok()) << to_string(t.error());
  Target expected = *load_target("npu");
  expected.name = expected.device.name = "mine";
  expected.limits.events = 9;
  expected.costs.wait_us = expected.device.wait_us = 4;
  EXPECT_EQ(t->tasks_of("HcomReduce"), 8u);
  EXPECT_EQ(t->tasks_of("Relu"), 2u);
  EXPECT_EQ(t->task_counts.size(), expected.task_counts.size() + 1);
  expected.task_counts = t->task_counts;
  EXPECT_EQ(to_toml(*t), to_toml(expected));
  const Result<Target> other = parse_target("name = \"mine\"\nlike = \"npu\"\n[[engine]]\nname = \"E\"\n", "t.toml");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->engines.size(), 1u);
  EXPECT_EQ(failure("name = \"t\"\nlike = \"t.toml\"\n"),
            "error: like of the target must be a built-in target: cpu, npu, unit, a2, train, infer, edge [E41 bad target]\n"
            "  --> t.toml:2:8");
}

TEST(Target, TheDeviceFamiliesHaveTheirPublishedLimits) {
  struct Row {
    std::string name;
    std::uint32_t streams, events, notifies;
  };
  for (const Row& row : {Row{"default", 2048, 65536, 1024}, Row{"a2", 1984, 65535, 8192}, Row{"train", 2048, 65535, 1024},
                         Row{"infer", 1024, 1023, 1024}, Row{"edge", 512, 65535, 2048}}) {
    const Result<Profile> p = load_profile(row.name);
    ASSERT_TRUE(p.ok()) << to_string(p.error());
    EXPECT_EQ(p->name, row.name);
    EXPECT_EQ(p->max_streams, row.streams) << row.name;
    EXPECT_EQ(p->max_events, row.events) << row.name;
    EXPECT_EQ(p->max_notifies, row.notifies) << row.name;
    EXPECT_EQ(p->max_labels, 65535u) << row.name;
    EXPECT_EQ(p->least_priority - p->greatest_priority, 7) << row.name;
    if (row.name == "default") continue;
    const Limits limits = load_target(row.name)->limits;
    EXPECT_EQ(limits.streams + 1, row.streams) << row.name;
    EXPECT_EQ(limits.events, row.events) << row.name;
    EXPECT_EQ(limits.notifies, row.notifies) << row.name;
  }
}

TEST(Engines, TheEngineOfANodeIsItsOwnOrThePreferredThatTakesItsType) {
  const Graph g = parsed(R"(graph
  d = Data()
  m = MatMul(d)
  r = Relu(m)
  v = Relu(m) @engine("VectorEngine")
  h = HcomAllReduce(r)
  p = DvppResize(v)
  s = StringNormalizer(p)
)");
  const Result<Target> t = load_target("npu");
  ASSERT_TRUE(t.ok());
  const auto engines = resolve_engines(g, *t);
  ASSERT_TRUE(engines.ok()) << to_string(engines.error());
  const auto engine = [&](std::string_view node) { return t->engines[(*engines)[*g.find_node(node)]].name; };
  EXPECT_EQ(engine("d"), "DNN_VM_GE_LOCAL");
  EXPECT_EQ(engine("m"), "AIcoreEngine");
  EXPECT_EQ(engine("r"), "AIcoreEngine");
  EXPECT_EQ(engine("v"), "VectorEngine");
  EXPECT_EQ(engine("h"), "DNN_HCCL");
  EXPECT_EQ(engine("p"), "DVPP");
  EXPECT_EQ(engine("s"), "DNN_VM_AICPU");
}

TEST(Engines, EveryNodeThatNoEngineTakesIsNamed) {
  const Graph g = parsed("graph\n a = Foo()\n b = Relu(a)\n c = Bar(b)\n d = Relu(c) @engine(\"Nope\")\n");
  const Result<Target> t = parse_target(
      "name = \"t\"\nengines_in_input = true\n[[engine]]\nname = \"E\"\nop_types = [\"Rel*\"]\n", "t");
  ASSERT_TRUE(t.ok());
  const auto engines = resolve_engines(g, *t);
  ASSERT_FALSE(engines.ok());
  EXPECT_EQ(to_string(engines.error()),
            "error: no engine supports 3 of 4 nodes [E01 unsupported operator]\n"
            "  note: a of type Foo: no engine of target t takes this type\n"
            "  note: c of type Bar: no engine of target t takes this type\n"
            "  note: d of type Relu: target t has no engine \"Nope\"\n"
            "  help: engines of target t: E; add the type to op_types of one");
}

TEST(Engines, ATargetWithoutTheInputsEnginesRunsEverythingItself) {
  const Graph g = parsed("graph\n a = Foo() @engine(\"AIcoreEngine\")\n");
  const Result<Target> t = load_target("cpu");
  ASSERT_TRUE(t.ok());
  EXPECT_TRUE(resolve_engines(g, *t).ok());
}

TEST(Target, TaskCountsAndHugeLimitsAreKeysAndSurviveAWriting) {
  const Result<Target> t = parse_target(
      "name = \"t\"\n[limits]\nhuge_streams = 2\ntasks_per_huge_stream = 99\n[tasks]\ndefault = 3\nHcomAllReduce = 245\n\"Hcom*\" = 7\n"
      "[[engine]]\nname = \"E\"\nop_types = [\"*\"]\n", "t.toml");
  ASSERT_TRUE(t.ok()) << to_string(t.error());
  EXPECT_EQ(t->tasks_per_node, 3u);
  ASSERT_EQ(t->task_counts.size(), 2u);
  EXPECT_EQ(t->task_counts[0].op_type, "HcomAllReduce");  // the more precise pattern comes first
  EXPECT_EQ(t->task_counts[0].tasks, 245u);
  EXPECT_EQ(t->limits.huge_streams, 2u);
  const Result<Target> again = parse_target(to_toml(*t), "again.toml");
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(to_toml(*again), to_toml(*t));
  EXPECT_EQ(load_target("npu")->tasks_per_node, 3u);
}

TEST(Engines, TheJsonTableGivesFlagsAndSaysWhatIsWrongWithIt) {
  Target t = *parse_target("name = \"t\"\n[[engine]]\nname = \"A\"\nop_types = [\"*\"]\n", "t.toml");
  const auto read = [&](std::string_view json) {
    const auto got = import_engines_json(t, json, "e.json", true);
    return got.ok() ? std::string("ok") : got.error().message;
  };
  const auto got = import_engines_json(
      t, R"({"schedule_units": [{"id": "TS_1", "name": "s", "ex_attrs": "", "cal_engines": [
          {"id": "A", "name": "x", "independent": false, "attach": true, "skip_assign_stream": false},
          {"id": "B", "independent": true}]}]})", "e.json", true);
  ASSERT_TRUE(got.ok()) << to_string(got.error());
  EXPECT_TRUE(got->engines[EngineId(0)].attach);
  ASSERT_EQ(got->engines.size(), 2u);
  EXPECT_TRUE(got->engines[EngineId(1)].independent);
  EXPECT_EQ(read("{"), "e.json: this is not JSON");
  EXPECT_EQ(read("{}"), "e.json: schedule_units is missing");
  EXPECT_EQ(read(R"({"schedule_units": 1})"), "e.json: schedule_units must be an array");
  EXPECT_EQ(read(R"({"schedule_units": [{}]})"), "e.json: schedule unit 0 has no id");
  EXPECT_EQ(read(R"({"schedule_units": [{"id": "s", "cal_engines": []}, {"id": "s", "cal_engines": []}]})"), "e.json: scheduler \"s\" is listed twice");
  EXPECT_EQ(read(R"({"schedule_units": [{"id": "s"}]})"), "e.json: scheduler \"s\" has no cal_engines");
  EXPECT_EQ(read(R"({"schedule_units": [{"id": "s", "cal_engines": 1}]})"), "e.json: cal_engines of scheduler \"s\" must be an array");
  EXPECT_EQ(read(R"({"schedule_units": [{"id": "s", "cal_engines": [{}]}]})"), "e.json: an engine of scheduler \"s\" has no id");
  EXPECT_EQ(read(R"({"schedule_units": [{"id": "s", "cal_engines": [{"id": "A"}, {"id": "A"}]}]})"), "e.json: engine \"A\" is listed twice in scheduler \"s\"");
  EXPECT_EQ(read(R"({"schedule_units": [{"id": "s", "cal_engines": [{"id": "A"}]}, {"id": "r", "cal_engines": [{"id": "A"}]}]})"),
            "e.json: engine \"A\" is in 2 schedulers, allowed is one");
  EXPECT_EQ(read(R"({"schedule_units": []})"), "e.json: engine \"A\" of target t is in no scheduler");
}

}  // namespace
}  // namespace millstream
