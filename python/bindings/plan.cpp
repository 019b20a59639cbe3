// SPDX-License-Identifier: Apache-2.0
// Compilation, and what a plan says about itself.
#include "python/bindings/plan.h"

#include <unordered_map>

#include <fmt/format.h>

#include "millstream/assign/chain.h"
#include "millstream/assign/rules.h"
#include "millstream/compile/simulate.h"
#include "millstream/dump/dump.h"
#include "millstream/graph/text.h"
#include "millstream/pass/load.h"
#include "millstream/pass/policy.h"
#include "millstream/report/explain.h"
#include "millstream/schedule/summary.h"

namespace millstream::python {
namespace {

using OptionValues = std::vector<std::pair<std::string, std::string>>;

// In the order of the dictionary, which counts: `compat` sets others. None says nothing.
OptionValues texts_of(const nb::mapping& options) {
  OptionValues out;
  for (const nb::handle item : options.items()) {
    const nb::object key = item[0], value = item[1];
    std::string name;
    if (!nb::try_cast(key, name)) throw nb::type_error("names of options are str");
    if (value.is_none()) continue;
    if (nb::isinstance<nb::bool_>(value)) {
      out.emplace_back(name, nb::cast<bool>(value) ? "true" : "false");
    } else if (nb::isinstance<nb::str>(value) || nb::isinstance<nb::int_>(value)) {
      out.emplace_back(name, nb::cast<std::string>(nb::str(value)));
    } else {
      throw nb::type_error(fmt::format("option {}: a value is str, int or bool", name).c_str());
    }
  }
  return out;
}

Result<std::uint32_t> cores_of(const std::string& text) {
  const bool number = !text.empty() && text.size() < 5 && text.find_first_not_of("0123456789") == std::string::npos;
  const unsigned long n = number ? std::stoul(text) : 0;
  if (n < 1 || n > 4096) return Error{ErrorCode::bad_option, fmt::format("cores {} lies outside 1..4096", text)};
  return static_cast<std::uint32_t>(n);
}

// target, cores and pass_policy, then the rows of the option table.
Result<void> read_options(const OptionValues& values, std::uint32_t machine_cores, Plan& plan) {
  std::string target = "cpu";
  std::optional<std::string> cores;
  for (const auto& [key, value] : values) {
    if (key == "target") {
      target = value;
    } else if (key == "cores") {
      cores = value;
    } else if (key == "pass_policy") {
      MST_TRY(plan.options.passes.policy, pass_policy(value, "pass_policy"));
    } else {
      MST_TRY_VOID(set_option(plan.options, key, value));
    }
  }
  MST_TRY(plan.target, load_target(target));
  if (target == "cpu") plan.target.cores = machine_cores;
  if (!cores) return {};
  MST_TRY(plan.target.cores, cores_of(*cores));
  return {};
}

Result<void> load_libraries(const std::vector<std::string>& libraries, CompileOptions& options) {
  PassSources sources;
  sources.named = libraries;
  sources.strict = options.passes.policy == PassPolicy::strict;
  MST_TRY(LoadedPasses loaded, load_passes(sources));
  options.passes.passes = std::move(loaded.passes);
  options.warnings.insert(options.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
  return {};
}

Result<void> fill(Plan& plan, Graph graph, const OptionValues& options, const std::vector<std::string>& libraries, std::uint32_t cores) {
  const std::vector<std::string> names = [&] {
    std::vector<std::string> out;
    for (const NodeId n : graph.nodes()) out.emplace_back(graph.name(n));
    return out;
  }();
  MST_TRY_VOID(read_options(options, cores, plan));
  MST_TRY_VOID(load_libraries(libraries, plan.options));
  MST_TRY(plan.graph, prepare(std::move(graph), plan.target, plan.options));
  MST_TRY(plan.compiled, compile(plan.graph, plan.target, plan.options));
  std::unordered_map<std::string_view, NodeId> by_name;  // looked up only, never iterated
  for (const NodeId n : plan.graph.nodes()) by_name.emplace(plan.graph.name(n), n);
  plan.given.resize(plan.graph.node_count());
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    const NodeId n = by_name.at(names[i]);
    plan.prepared.push_back(n);
    plan.given[n] = i;
  }
  plan.stream.resize(plan.graph.node_count());
  for (const PhysicalStreamId s : ids<PhysicalStreamId>(plan.compiled.schedule.streams.size())) {
    for (const Task& t : plan.compiled.schedule.streams[s].tasks) {
      if (t.kind == Task::Kind::launch) plan.stream[t.node()] = s;
    }
  }
  return {};
}

std::shared_ptr<Plan> compile_graph(const GraphUnderWork& under_work, const nb::mapping& options, const std::vector<std::string>& passes) {
  const OptionValues values = texts_of(options);
  Graph graph = under_work.finished();
  auto plan = std::make_shared<Plan>();
  const std::uint32_t cores = machine_cores();
  Result<void> done = [&] {
    const nb::gil_scoped_release others_run;
    return fill(*plan, std::move(graph), values, passes, cores);
  }();
  if (!done.ok()) throw ErrorThrown{under_work.placed(std::move(done).error())};
  return plan;
}

NodeId node_of(const Plan& plan, std::uint32_t node) {
  if (node < plan.prepared.size()) return plan.prepared[node];
  throw nb::index_error(fmt::format("node {}: the plan has {}", node, plan.prepared.size()).c_str());
}

std::optional<std::uint32_t> stream_of(const Plan& plan, std::uint32_t node) {
  const auto& stream = plan.stream[node_of(plan, node)];
  return stream ? std::optional(stream->index) : std::nullopt;
}

std::optional<std::uint32_t> logical_stream_of(const Plan& plan, std::uint32_t node) {
  const auto stream = plan.compiled.assignment.stream_of(node_of(plan, node));
  return stream ? std::optional(stream->index) : std::nullopt;
}

std::vector<std::string> warnings_of(const Plan& plan) {
  std::vector<std::string> out;
  const Compiled& c = plan.compiled;
  for (const auto* list : {&c.assignment.warnings, &c.sync.warnings, &c.schedule.warnings}) {
    for (const Error& w : *list) out.push_back(to_string(w, "warning"));
  }
  return out;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> waits_of(const Plan& plan) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
  for (const SyncPair& p : plan.compiled.sync.kept) {
    if (plan.given[p.to] && plan.given[p.from] && p.from != p.to) out.emplace_back(*plan.given[p.to], *plan.given[p.from]);
  }
  return out;
}

std::vector<std::string> verified(const Plan& plan) {
  std::vector<std::string> out;
  for (const Violation& v : check(plan.graph, plan.compiled.schedule, &plan.target, plan.compiled.memory.reuse, false).violations) out.push_back(v.message);
  return out;
}

std::string explained(const Plan& plan, std::optional<std::uint32_t> node) {
  const Compiled& c = plan.compiled;
  const ExplainInput input{plan.graph, c.assignment, c.sync, c.schedule};
  const std::optional<NodeId> only = node ? std::optional(node_of(plan, *node)) : std::nullopt;
  std::vector<NodeReasons> reasons = value_of(explain(input, only));
  if (only && chosen_strategy(plan.graph, plan.target, plan.options.assign) == Strategy::ge) {
    reasons.front().decisions = value_of(explain_placement(plan.graph, plan.target, plan.options.assign, *only));
  }
  std::string out;
  for (const NodeReasons& r : reasons) out += print(input, r);
  return out;
}

using Simulated = std::tuple<std::uint32_t, std::uint32_t, double, double>;

std::vector<Simulated> simulated(const Plan& plan) {
  const Schedule& schedule = plan.compiled.schedule;
  const Trace trace = value_of(simulate(plan.graph, plan.target, schedule, plan.compiled.assignment.threads_per_op));
  std::vector<Simulated> out;
  for (const Span& span : trace.spans) {
    if (span.what.kind != Task::Kind::launch || !plan.given[span.what.node()]) continue;
    out.emplace_back(*plan.given[span.what.node()], span.task.stream.index, static_cast<double>(span.begin_ns) / 1000, static_cast<double>(span.end_ns) / 1000);
  }
  return out;
}

std::string dumped(const Plan& plan, const std::string& format) {
  if (format != "pbtxt" && format != "txt") throw nb::value_error(fmt::format("a dump is pbtxt or txt, not \"{}\"", format).c_str());
  DumpStreams streams;
  streams.schedule = &plan.compiled.schedule;
  return write_dump(plan.graph, streams, format == "pbtxt" ? DumpFormat::onnx : DumpFormat::proto, DumpDetail::full);
}

std::string page(const Plan& plan) {
  const ReportInput input{plan.graph, plan.target, plan.compiled.assignment, plan.compiled.sync, plan.compiled.schedule};
  ReportPlan report = report_plan(input);
  report.title = plan.graph.name();
  report.views.push_back(value_of(simulated_view(input, report)));
  return to_html({std::move(report)});
}

}  // namespace

std::uint32_t machine_cores() { return static_cast<std::uint32_t>(nb::len(nb::module_::import_("os").attr("sched_getaffinity")(0))); }

void bind_plan(nb::module_& m) {
  nb::class_<Plan>(m, "Plan", "What compile decided: streams, order and waits of a graph. Never changes. Nodes have the ids of the graph.")
      .def_prop_ro("warnings", warnings_of, "What compile has to say, as text.")
      .def_prop_ro("streams", [](const Plan& p) { return p.compiled.schedule.stream_count(); }, "Number of streams on the device, at least 1.")
      .def_prop_ro("threads_per_op", [](const Plan& p) { return p.compiled.assignment.threads_per_op; }, "Threads that the plan gives one operator.")
      .def_prop_ro("waits", waits_of, "(waiting node, awaited node) of each pair across streams, in the plan's order.")
      .def("stream_of", stream_of, nb::arg("node"), "The stream that launches a node; None for one without a task. Raises IndexError.")
      .def("logical_stream_of", logical_stream_of, nb::arg("node"),
           "The same before streams that are too long for the device are cut: nodes of one label have one. Raises IndexError.")
      .def("allocation_summary", [](const Plan& p) { return print(summarize(p.graph, p.compiled.assignment, p.compiled.sync, p.compiled.schedule)); },
           "One line for each logical stream that has nodes, then the counts.")
      .def("explain", explained, nb::arg("node") = nb::none(),
           "Which rule placed each node (or one), which waits it needs, and what implies the others. Raises IndexError.")
      .def("simulate", simulated, nb::call_guard<nb::gil_scoped_release>(),
           "(node, stream, start, end) of each launch on the target's simulated device, by stream, then as they ran; microseconds of its virtual time.")
      .def("dump", dumped, nb::arg("format") = "pbtxt",
           "The compiled graph as the ecosystem's dumps show it (docs/dumps.md), with records and waits: \"pbtxt\" as ge_onnx_*.pbtxt, \"txt\" as\n"
           "ge_proto_*.txt. Raises ValueError for another format.")
      .def("report", page, nb::call_guard<nb::gil_scoped_release>(), "The report page (docs/report.md): one HTML document with a simulated run.")
      .def("verify", verified, nb::call_guard<nb::gil_scoped_release>(),
           "What the independent verifier finds: races, deadlocks, limits of the target. Empty: proved.")
      .def("text", [](const Plan& p) { return print(p.graph) + "\nschedule\n" + print(p.graph, p.compiled.schedule); },
           "Graph and lanes in the text format: `millstream check` and `millstream run` read it.");
  m.def("compile", compile_graph, nb::arg("graph"), nb::arg("options") = nb::dict(), nb::kw_only(), nb::arg("passes") = nb::list(),
        nb::sig("def compile(graph: Graph, options: collections.abc.Mapping[str, str | int | bool | None] = {}, *, "
                "passes: collections.abc.Sequence[str] = []) -> Plan"),
        "Decides streams and waits, and verifies them.\n\n"
        "options: the keys of docs/options.md, their ecosystem names too, and target (a built-in's name or a file; default cpu), cores, pass_policy.\n"
        "Values are str, int or bool; None counts as not given. passes: paths of libraries with stream passes (docs/passes.md).\n"
        "Environment variables are not read. Raises Error: E12 for an option, E40 for the graph, else that of the stage.");
}

}  // namespace millstream::python
