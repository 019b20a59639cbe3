// SPDX-License-Identifier: Apache-2.0
// gen and convert: text in, text out.
#include <cstdio>

#include <fmt/format.h>

#include "millstream/graph/text.h"
#include "millstream/import/file_bytes.h"
#include "tools/millstream/common.h"
#include "tools/millstream/gen.h"

namespace millstream::cli {
namespace {

struct GenCommand {
  GenOptions options;
  std::string output;
  std::string listing = "breadth";
  bool json = false;
};

std::uint64_t count_nodes(const Graph& graph) {
  std::uint64_t n = graph.node_count();
  for (std::size_t i = 0; i < graph.body_count(); ++i) n += count_nodes(graph.body(BodyId(static_cast<std::uint32_t>(i))));
  return n;
}

// To a file, and says so on stderr; or to stdout where the name is "-".
Result<int> write_out(const std::string& output, const std::string& text, std::uint64_t nodes, bool json) {
  if (output == "-") {
    if (json) return Error{ErrorCode::usage, "--json and the output \"-\" both want the standard output"}.help("give a file name");
    fmt::print("{}", text);
    return 0;
  }
  MST_TRY_VOID(write_bytes(output, text));
  if (json) print_json({{"output", output}, {"nodes", nodes}});
  complain(fmt::format("wrote {} ({})\n", output, counted(nodes, "node")));
  return 0;
}

Result<int> run_gen(const GenCommand& command) {
  GenOptions options = command.options;
  options.listing = command.listing == "lanes" ? Listing::lanes : Listing::breadth;
  MST_TRY(const std::string text, generate(options));
  std::uint64_t nodes = 0;
  if (command.output != "-") {
    MST_TRY(const Graph graph, parse_graph(text, command.output));
    nodes = count_nodes(graph);
  }
  return write_out(command.output, text, nodes, command.json);
}

struct ConvertCommand {
  ModelOptions input;
  std::string output;
};

Result<int> run_convert(const ConvertCommand& command) {
  const std::string& output = command.output;
  if (output != "-" && !ends_with(output, ".mst")) {
    return Error{ErrorCode::usage, fmt::format("cannot write \"{}\"", output)}.help("convert writes .mst (millstream text), or - for stdout");
  }
  MST_TRY(const Loaded loaded, load(command.input));
  if (output != "-") MST_TRY_VOID(check_output(output, command.input, loaded.model_path));
  std::string text = print(loaded.graph);
  if (loaded.schedule) text += "\nschedule\n" + print(loaded.graph, *loaded.schedule);
  return write_out(output, text, count_nodes(loaded.graph), command.input.json);
}

}  // namespace

void add_gen(CLI::App& app, int& status) {
  auto command = std::make_shared<GenCommand>();
  CLI::App* sub = app.add_subcommand("gen", "write a generated graph");
  std::string known;
  std::string help = "\nTopologies:\n";
  for (const Topology& t : topologies()) help += fmt::format("  {:12} {}\n", t.name, t.what);
  sub->footer(help);
  sub->add_option("NAME", command->options.topology, "topology, see below")->required();
  sub->add_option("--nodes", command->options.nodes, "operators wanted")->capture_default_str();
  sub->add_option("--width", command->options.width, "lanes, branches, heads or experts");
  sub->add_option("--labels", command->options.labels, "spread K stream labels over the lanes");
  sub->add_option("--engines", command->options.engines, "spread K engines of target npu over the lanes (at most 5)");
  sub->add_option("--p", command->options.p, "chance of a cross edge or a rewiring, 0..1");
  sub->add_option("--listing", command->listing, "order of the lines: lanes or breadth")
      ->check(CLI::IsMember({"lanes", "breadth"}))
      ->capture_default_str();
  sub->add_option("--seed", command->options.seed, "seed of everything random")->check(CLI::NonNegativeNumber)->capture_default_str();
  sub->add_option("-o,--output", command->output, "file to write (.mst), or - for stdout")->required();
  sub->add_flag("--json", command->json, "print one JSON object on stdout");
  sub->callback(runner(command, run_gen, status));
}

void add_convert(CLI::App& app, int& status) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App* sub = app.add_subcommand("convert", "read a model, schedule or plan and write it as text");
  add_model_options(*sub, command->input, "IN", "model (.onnx, .mst), schedule (.mst) or .plan");
  sub->add_option("OUT", command->output, "file to write (.mst), or - for stdout")->required();
  sub->callback(runner(command, run_convert, status));
}

}  // namespace millstream::cli
