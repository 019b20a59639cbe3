// SPDX-License-Identifier: Apache-2.0
// `millstream report` and `--profile`, as a user calls them.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/cli_fixture.h"

namespace millstream {
namespace {

using nlohmann::json;

class CliReport : public Cli {
 protected:
  // The data of a page.
  json data(const std::string& name) const {
    const std::string page = text_of(name), mark = "<script type=\"application/json\" id=\"data\">";
    const std::size_t begin = page.find(mark);
    if (begin == std::string::npos) return nullptr;
    return json::parse(page.substr(begin + mark.size(), page.find("</script>", begin) - begin - mark.size()));
  }
  json answer() const { return json::parse(out()); }
};

TEST_F(CliReport, AModelAPlanAndAScheduleEachHaveAPage) {
  ASSERT_EQ(run("compile two.mst --dim N=4 --streams 2 --force-streams -o two.plan"), 0) << err();
  ASSERT_EQ(run("compile two.mst --dim N=4 --streams 2 --force-streams -o lanes.mst"), 0) << err();
  ASSERT_EQ(run("report two.mst --dim N=4 --streams 2 --force-streams -o model.html"), 0) << err();
  ASSERT_EQ(run("report two.plan -o plan.html"), 0) << err();
  ASSERT_EQ(run("report lanes.mst --graph two.mst --dim N=4 -o lanes.html"), 0) << err();
  for (const char* page : {"model.html", "plan.html", "lanes.html"}) {
    const json plan = data(page)["plans"][0];
    EXPECT_EQ(plan["nodes"]["name"], (json{"a", "b", "out"})) << page;
    EXPECT_EQ(plan["counts"]["streams"], 2) << page;
    EXPECT_EQ(plan["counts"]["pairs_kept"], data("model.html")["plans"][0]["counts"]["pairs_kept"]) << page;
    EXPECT_GT(plan["runs"][0]["total_ns"], 0) << page;
  }
  EXPECT_EQ(data("lanes.html")["plans"][0]["nodes"]["rule"][0], -1);
  EXPECT_EQ(data("model.html")["plans"][0]["nodes"]["rule"][0], data("plan.html")["plans"][0]["nodes"]["rule"][0]);
}

TEST_F(CliReport, TwoInputsStandBesideEachOther) {
  ASSERT_EQ(run("compile two.mst --dim N=4 --strategy single -o one.plan"), 0) << err();
  ASSERT_EQ(run("report one.plan two.mst --dim N=4 --streams 2 --force-streams -o both.html --json"), 0) << err();
  EXPECT_EQ(answer()["plans"].size(), 2u);
  EXPECT_EQ(answer()["plans"][0]["streams"], 1);
  EXPECT_EQ(answer()["plans"][1]["streams"], 2);
  EXPECT_EQ(answer()["bytes"], text_of("both.html").size());
}

TEST_F(CliReport, APlanWithoutATargetSaysThatItsTimesAreOfTheCpu) {
  const std::string note = "no --target is given, and \"two.plan\" does not say what it was made for: the times are of cpu";
  ASSERT_EQ(run("compile two.mst --dim N=4 --target unit -o two.plan"), 0) << err();
  ASSERT_EQ(run("report two.plan -o plan.html"), 0) << err();
  EXPECT_TRUE(err_has(note)) << err();
  EXPECT_EQ(data("plan.html")["plans"][0]["notes"], json{note});
  ASSERT_EQ(run("report two.plan --target unit -o plan.html"), 0) << err();
  EXPECT_FALSE(err_has("no --target")) << err();
  ASSERT_EQ(run("report two.mst --dim N=4 -o model.html"), 0) << err();
  EXPECT_FALSE(err_has("no --target")) << err();
}

TEST_F(CliReport, EnginesWithoutANodeHaveNoRow) {
  put("engines.mst", "graph\n  input x : f32[4]\n  a = Relu(x) @engine(\"VectorEngine\") @cost(1)\n  output a\n");
  ASSERT_EQ(run("report engines.mst --target npu -o engines.html"), 0) << err();
  const json plan = data("engines.html")["plans"][0], rows = plan["runs"][0]["engines"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(plan["engines"][rows[0]["engine"].get<std::size_t>()], "VectorEngine");
  EXPECT_EQ(rows[0]["busy_ns"], 1000);
}

TEST_F(CliReport, ARunAddsMeasuredTimes) {
  ASSERT_EQ(run("report two.mst --dim N=4 --run --json -o run.html", "timeout 60 "), 0) << err();
  ASSERT_EQ(answer()["plans"][0]["views"].size(), 2u);
  EXPECT_EQ(answer()["plans"][0]["views"][1]["what"].get<std::string>().rfind("measured on cpu", 0), 0u);
}

TEST_F(CliReport, ControlFlowOnTheDeviceIsShownOnceThrough) {
  put("if.mst",
      "graph\n  input x : f32[4]\n  input c : bool[]\n  r = If(c) {then_branch=body(yes), else_branch=body(no)} : f32[4]\n  output r\n"
      "body yes\n  outer x : f32[4]\n  p = Relu(x) : f32[4]\n  output p\nbody no\n  outer x : f32[4]\n  q = Neg(x) : f32[4]\n  output q\n");
  ASSERT_EQ(run("report if.mst --strategy ge --target npu -o if.html --json"), 0) << err();
  EXPECT_NE(answer()["plans"][0]["views"][0]["what"].get<std::string>().find("once"), std::string::npos);
  EXPECT_TRUE(data("if.html")["plans"][0]["bounds"].is_null());
}

TEST_F(CliReport, ThePageIsNoFileThatIsReadAndEndsInHtml) {
  EXPECT_EQ(run("report two.mst --dim N=4 -o two.txt"), 2);
  EXPECT_TRUE(err_has("must end in .html")) << err();
  EXPECT_EQ(run("report two.mst --dim N=4 -o .html"), 2);
  EXPECT_EQ(run("report two.mst --dim N=4"), 2);
  EXPECT_EQ(run("report two.mst missing.mst --dim N=4 -o x.html"), 2);
  EXPECT_FALSE(fs::exists(root_ / "x.html"));
}

TEST_F(CliReport, AScheduleThatRacesHasNoPage) {
  put("race.mst", std::string(kTwo) + "\nschedule\nstream 0: a\nstream 1: b out\n");
  EXPECT_EQ(run("report race.mst --dim N=4 -o race.html"), 1);
  EXPECT_TRUE(err_has("E37")) << err();
}

const char* const kProfile = "Op Name,OP Type,Stream ID,Task Start Time(us),Task Duration(us)\na,Sigmoid,7,100.000\t,20.500\nb,Tanh,8,101.000\t,30\nother,X,8,140,1\n";

TEST_F(CliReport, AProfileGivesNodesTheirTimes) {
  put("p.csv", kProfile);
  ASSERT_EQ(run("compile two.mst --dim N=4 --target unit --profile p.csv --json"), 0) << err();
  EXPECT_EQ(answer()["profile"]["nodes"], 2);
  EXPECT_EQ(answer()["profile"]["records"], 2);
  EXPECT_EQ(answer()["profile"]["named_records"], 3);
  EXPECT_NEAR(answer()["profile"]["joined_us"].get<double>(), 50.5, 1e-9);
  EXPECT_NEAR(answer()["estimated"]["single_stream_us"].get<double>(), 51.5, 1e-9);
  EXPECT_TRUE(err_has("profile: 2 of 3 nodes measured, not \"out\"; 2 of 3 records, 98.1 % of their 51.500 us, belong to nodes")) << err();
  ASSERT_EQ(run("run two.mst --dim N=4 --target unit --strategy single --device sim --profile p.csv --json"), 0) << err();
  EXPECT_NEAR(answer()["span_us"].get<double>(), 51.5, 1e-9);
}

TEST_F(CliReport, ThePlanIsShownFirstAndTheProfilesOwnStreamsAndTimesBehindIt) {
  put("p.csv", kProfile);
  ASSERT_EQ(run("report two.mst --dim N=4 --target unit --streams 2 --force-streams --profile p.csv -o p.html"), 0) << err();
  const json runs = data("p.html")["plans"][0]["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["what"], "simulated on target unit");
  EXPECT_EQ(runs[1]["what"], "measured: profile");
  EXPECT_EQ(runs[1]["lanes"], (json{"device stream 7", "device stream 8"}));
  EXPECT_EQ(runs[1]["total_ns"], 31000);
  EXPECT_EQ(runs[1]["spans"]["gap"], (json{0, 1000}));
  ASSERT_EQ(run("report two.mst two.mst --dim N=4 --target unit --profile p.csv -o pair.html"), 0) << err();
  for (const json& plan : data("pair.html")["plans"]) {
    EXPECT_EQ(plan["runs"][0]["what"], "simulated on target unit");
    EXPECT_EQ(plan["runs"][1]["what"], "measured: profile");
  }
}

TEST_F(CliReport, AProfileOfOtherStreamsShowsNoWaitsOfThePlan) {
  const std::string head = "Op Name,OP Type,Stream ID,Task Start Time(us),Task Duration(us)\n";
  put("other.csv", head + "a,Sigmoid,7,100,20\nb,Tanh,7,120,30\nout,Add,7,150,10\n");
  put("same.csv", head + "a,Sigmoid,8,100,20\nb,Tanh,7,100,30\nout,Add,7,150,10\n");
  const std::string report = "report two.mst --dim N=4 --target unit --streams 2 --force-streams -o p.html --profile ";
  ASSERT_EQ(run(report + "other.csv"), 0) << err();
  const json page = data("p.html")["plans"][0], stream = page["nodes"]["stream"];
  ASSERT_NE(stream[0], stream[1]);
  EXPECT_EQ(page["counts"]["pairs_kept"], 1);
  EXPECT_EQ(page["runs"][1]["arrows"], json::array());
  EXPECT_EQ(stream[1], stream[2]);
  ASSERT_EQ(run(report + "same.csv"), 0) << err();
  EXPECT_EQ(data("p.html")["plans"][0]["runs"][1]["arrows"].size(), 2u);
}

TEST_F(CliReport, APlanMadeWithAProfileFitsTheModelWithout) {
  put("p.csv", kProfile);
  ASSERT_EQ(run("compile two.mst --dim N=4 --target unit --profile p.csv -o p.plan"), 0) << err();
  EXPECT_EQ(run("check p.plan"), 0) << err();
  EXPECT_EQ(run("run p.plan --device sim --target unit --profile p.csv"), 0) << err();
}

// A profiler that loses waits makes the critical path wrong: a trace holds each record and wait of the plan, with event and
// stream, and an arrow for each pair.
TEST_F(CliReport, ATraceCarriesEachRecordAndWaitWithItsStream) {
  put("fork.mst",
      "graph\n  input x : f32[4]\n  a = Relu(x) @cost(1)\n  slow = Neg(a) @cost(10) @label(\"s\")\n  quick = Abs(a) @cost(1)\n"
      "  out = Add(slow, quick) @cost(1)\n  output out\n");
  ASSERT_EQ(run("compile fork.mst --target unit --streams 2 --force-streams -o fork.plan --json"), 0) << err();
  const json plan = answer();
  for (const char* device : {"sim", "cpu"}) {
    ASSERT_EQ(run(std::string("run fork.plan --trace t.json --device ") + device + (device[0] == 's' ? " --target unit" : ""), "timeout 60 "), 0) << err();
    std::multiset<std::string> wanted, got;
    for (const json& lane : plan["lanes"]) {
      for (const json& task : lane["tasks"]) {
        if (task["do"] == "record" || task["do"] == "wait") wanted.insert(task["do"].get<std::string>() + " e" + task["event"].dump() + " on " + lane["stream"].dump());
      }
    }
    std::map<std::string, std::string> begins, ends;  // by arrow: event and stream
    const json events = json::parse(text_of("t.json"))["traceEvents"];
    for (const json& e : events) {
      const std::string at = " on " + e.value("tid", json()).dump();
      if (e["ph"] == "X" && (e["cat"] == "record" || e["cat"] == "wait")) {
        EXPECT_EQ(e["args"]["stream"], e["tid"]);
        got.insert(e["cat"].get<std::string>() + " e" + e["args"]["event"].dump() + at);
      }
      if (e["ph"] == "s") begins[e["id"].dump()] = "record " + e["name"].get<std::string>() + at;
      if (e["ph"] == "f") ends[e["id"].dump()] = "wait " + e["name"].get<std::string>() + at;
    }
    EXPECT_EQ(got, wanted) << device;
    EXPECT_EQ(begins.size(), plan["waits"].get<std::size_t>()) << device;
    std::multiset<std::string> arrows;
    for (const auto& [id, text] : begins) arrows.insert({text, ends[id]});
    EXPECT_EQ(arrows, wanted) << device;
  }
  // The critical path follows the arrows: across to the slow branch and back.
  ASSERT_EQ(run("report fork.plan --target unit -o fork.html"), 0) << err();
  const json page = data("fork.html")["plans"][0];
  std::string path;
  for (const json& at : page["runs"][0]["critical"]) {
    const std::size_t kind = page["runs"][0]["spans"]["k"][at.get<std::size_t>()], index = page["runs"][0]["spans"]["n"][at.get<std::size_t>()];
    path += kind == 0 ? page["nodes"]["name"][index].get<std::string>() + " " : kind == 1 ? "record " : "wait ";
  }
  EXPECT_EQ(path, "a record wait slow record wait out ");
}

TEST_F(CliReport, AnErrorInAProfileNamesItsPlace) {
  put("bad.csv", "Op Name,Task Duration(us)\na,20\nb,soon\n");
  EXPECT_EQ(run("compile two.mst --dim N=4 --profile bad.csv"), 2);
  EXPECT_TRUE(err_has("--> bad.csv:3:3")) << err();
  EXPECT_EQ(run("run two.mst --dim N=4 --device sim --profile missing.csv"), 2);
  EXPECT_TRUE(err_has("missing.csv")) << err();
}

TEST_F(CliReport, ExplainAndDiffTakeAProfileToo) {
  put("p.csv", kProfile);
  ASSERT_EQ(run("explain two.mst a --dim N=4 --target unit --profile p.csv"), 0) << err();
  EXPECT_TRUE(err_has("profile: 2 of 3 nodes measured")) << err();
  ASSERT_EQ(run("compile two.mst --dim N=4 --target unit --strategy single -o one.plan"), 0) << err();
  ASSERT_EQ(run("diff one.plan two.mst --dim N=4 --target unit --strategy single --profile p.csv --json"), 0) << err();
  EXPECT_NEAR(answer()["predicted_us"][1].get<double>(), 51.5, 1e-9);
  ASSERT_EQ(run("diff one.plan one.plan --profile p.csv"), 0) << err();
  EXPECT_TRUE(err_has("--profile without effect: neither of the two is compiled")) << err();
  ASSERT_EQ(run("explain one.plan --profile p.csv"), 0) << err();
  EXPECT_TRUE(err_has("--profile without effect: the plan decides")) << err();
}

TEST_F(CliReport, TheTerminalSaysWhereTheTimeGoes) {
  put("fork.mst", "graph\n  input x : f32[4]\n  a = Relu(x) @cost(1)\n  slow = Neg(a) @cost(10) @label(\"s\")\n  out = Add(slow, a) @cost(2)\n  output out\n");
  ASSERT_EQ(run("report fork.mst --target unit --streams 2 --force-streams -o fork.html"), 0) << err();
  EXPECT_EQ(out(),
            "fork.mst, simulated on target unit: 13.000 us, overlap 0.00\n  critical path: nodes 13.000\n"
            "  stream 0 (s): running 10.000, waiting for another stream 1.000, no work left 2.000\n"
            "  stream 1: running 3.000, waiting for another stream 10.000\nwrote fork.html (open it in a browser)\n");
  ASSERT_EQ(run("report fork.mst --target unit --streams 2 --force-streams -o fork.html --json"), 0) << err();
  EXPECT_EQ(answer()["plans"][0]["views"][0]["streams"][0]["wait_us"], 1.0);
  EXPECT_EQ(answer()["plans"][0]["views"][0]["critical_path_us"]["nodes"], 13.0);
}

TEST_F(CliReport, AProfileOfAnotherModelIsWarnedOf) {
  put("p.csv", "Op Name,Task Duration(us)\nelsewhere,20\n");
  EXPECT_EQ(run("compile two.mst --dim N=4 --profile p.csv"), 0) << err();
  EXPECT_TRUE(err_has("the profile names no node of this model")) << err();
}

TEST_F(CliReport, OurOwnTraceIsAProfile) {
  ASSERT_EQ(run("run two.mst --dim N=4 --target unit --device sim --trace t.json"), 0) << err();
  ASSERT_EQ(run("compile two.mst --dim N=4 --target unit --profile t.json --json"), 0) << err();
  EXPECT_EQ(answer()["profile"]["nodes"], 3);
}

}  // namespace
}  // namespace millstream
