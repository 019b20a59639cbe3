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
};

int run_gen(GenCommand& command) {
  command.options.listing = command.listing == "lanes" ? Listing::lanes : Listing::breadth;
  Result<std::string> text = generate(command.options);
  if (!text.ok()) return fail(text.error());
  if (command.output == "-") {
    fmt::print("{}", *text);
    return 0;
  }
  if (auto r = write_bytes(command.output, *text); !r.ok()) return fail(r.error());
  return 0;
}

int run_convert(const ModelOptions& input, const std::string& output) {
  if (output.size() < 4 || output.substr(output.size() - 4) != ".mst") {
    return fail(Error{ErrorCode::usage, fmt::format("cannot write \"{}\"", output)}.help("convert writes .mst (millstream text)"));
  }
  Result<Loaded> loaded = load(input);
  if (!loaded.ok()) return fail(loaded.error());
  if (auto r = check_output(output, input, loaded->model_path); !r.ok()) return fail(r.error());
  std::string text = print(loaded->graph);
  if (loaded->schedule) text += "\nschedule\n" + print(loaded->graph, *loaded->schedule);
  if (auto r = write_bytes(output, text); !r.ok()) return fail(r.error());
  if (input.json) fmt::print("{}\n", Json{{"output", output}, {"nodes", loaded->graph.node_count()}}.dump(2));
  return 0;
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
  sub->callback([command, &status] { status = run_gen(*command); });
}

void add_convert(CLI::App& app, int& status) {
  auto input = std::make_shared<ModelOptions>();
  auto output = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("convert", "read a model, schedule or plan and write it as text");
  add_model_options(*sub, *input, "IN", "model (.onnx, .mst), schedule (.mst) or .plan");
  sub->add_option("OUT", *output, "file to write: .mst")->required();
  sub->callback([input, output, &status] { status = run_convert(*input, *output); });
}

}  // namespace millstream::cli
