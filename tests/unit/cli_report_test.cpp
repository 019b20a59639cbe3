// SPDX-License-Identifier: Apache-2.0
// `millstream report` and `--profile`, as a user calls them.
#include <gtest/gtest.h>

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
  EXPECT_TRUE(err_has("profile: 2 of 3 nodes measured; 2 of 3 records, 98.1 % of their 51.500 us, belong to nodes")) << err();
  ASSERT_EQ(run("run two.mst --dim N=4 --target unit --strategy single --device sim --profile p.csv --json"), 0) << err();
  EXPECT_NEAR(answer()["span_us"].get<double>(), 51.5, 1e-9);
}

TEST_F(CliReport, AProfilesOwnStreamsAndTimesAreShownFirst) {
  put("p.csv", kProfile);
  ASSERT_EQ(run("report two.mst --dim N=4 --target unit --streams 2 --force-streams --profile p.csv -o p.html"), 0) << err();
  const json run_data = data("p.html")["plans"][0]["runs"][0];
  EXPECT_EQ(run_data["what"], "measured: profile");
  EXPECT_EQ(run_data["lanes"], (json{"device stream 7", "device stream 8"}));
  EXPECT_EQ(run_data["total_ns"], 31000);
  EXPECT_EQ(run_data["spans"]["gap"], (json{0, 1000}));
  EXPECT_EQ(data("p.html")["plans"][0]["runs"].size(), 2u);
}

TEST_F(CliReport, APlanMadeWithAProfileFitsTheModelWithout) {
  put("p.csv", kProfile);
  ASSERT_EQ(run("compile two.mst --dim N=4 --target unit --profile p.csv -o p.plan"), 0) << err();
  EXPECT_EQ(run("check p.plan"), 0) << err();
  EXPECT_EQ(run("run p.plan --device sim --target unit --profile p.csv"), 0) << err();
}

TEST_F(CliReport, AnErrorInAProfileNamesItsPlace) {
  put("bad.csv", "Op Name,Task Duration(us)\na,20\nb,soon\n");
  EXPECT_EQ(run("compile two.mst --dim N=4 --profile bad.csv"), 2);
  EXPECT_TRUE(err_has("--> bad.csv:3:3")) << err();
  EXPECT_EQ(run("run two.mst --dim N=4 --device sim --profile missing.csv"), 2);
  EXPECT_TRUE(err_has("missing.csv")) << err();
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
