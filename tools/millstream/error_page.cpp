// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/error_page.h"

#include <cctype>

#include <fmt/format.h>

namespace millstream::cli {

const std::vector<ErrorAdvice>& error_advice() {
  using C = ErrorCode;
  static const std::vector<ErrorAdvice> rows = {
      {C::unsupported_operator, "an operator, an element type or a version that millstream lacks",
       "a misspelt type, an operator set newer than 23, an operator of another vendor, an engine that takes no such type",
       "the notes name each operator and why; export with other operators, or see docs/operators.md"},
      {C::conflict, "two requests that cannot both hold", "stream labels together with --strategy single; single_stream=true with strategy auto",
       "drop one of the two that the message names"},
      {C::no_stream, "a node that needs a stream got none", "a custom rule that forgot nodes; a plan edited by hand",
       "place the named nodes, or let strategy auto do it"},
      {C::producer_unplaced, "a node with a stream reads from one that has none", "a custom rule that placed the reader only",
       "place the producer as well"},
      {C::wait_without_record, "a wait for an event that nothing records", "a schedule edited by hand: a record was removed or misnumbered",
       "add !eN behind the node that is waited for, or drop ?eN"},
      {C::notify_limit, "more notifies than the target has", "many waits on a target whose limits.notifies is small",
       "use fewer streams, --set sync=fewest, or raise limits.notifies of the target"},
      {C::stream_limit, "more streams than the target has", "many labels or engines; streams split because they are long",
       "strategy ge: fewer labels, groups and numbers in max_parallel; auto: --streams N; or raise limits.streams of the target"},
      {C::task_limit, "more tasks on one stream than the target allows", "a long graph on few streams that may not be split",
       "use more streams, or raise limits.tasks_per_stream of the target"},
      {C::self_activation, "a stream that starts itself", "an activation whose list holds the stream it stands on",
       "take that stream out of the list"},
      {C::never_activated, "a stream that nothing starts", "an activation list that lacks it; a label that no switch names",
       "add the stream to the list of an activation that runs before it"},
      {C::continuous_label, "the nodes of one continuous label do not fit one stream", "too many nodes carry the label",
       "spread the label over fewer nodes"},
      {C::bad_option, "an option with a value it does not take, or no such option", "a spelling mistake in --set KEY=VALUE",
       "millstream options lists keys, values and defaults"},
      {C::while_body, "the results of a while loop's body must stay on stream 0", "a stream label on the body's NetOutput",
       "drop the label of that node"},
      {C::attached_streams, "attached streams that cannot be given", "a node that wants more attached streams than there are",
       "ask for fewer, or give attach streams to its engine"},
      {C::label_without_dim, "branches of a model for several sizes would share one label's stream", "a label that does not contain its branch's name",
       "put the branch into the label, or set mdim_label_suffix=true"},
      {C::bad_attribute, "an attribute with a value that means nothing", "@cost of a negative number, a label out of range",
       "the message says which values are allowed"},
      {C::conditional_wait, "a wait whose record runs only sometimes", "a dependency from inside a branch to a node outside of it",
       "let the node that joins the branches carry the dependency"},
      {C::shared_event_id, "one event id for two records that may be pending together",
       "a schedule edited by hand that uses !eN again too early", "give the second pair another number"},
      {C::allocation_limit, "more events than the target has, or more streams than a program may ask for at once (2024)",
       "many waits on a target whose limits.events is small; a plan of very many streams",
       "use fewer streams, --set sync=fewest, or raise limits.events of the target"},
      {C::graph_changed, "a rule changed the graph it was only to read", "a custom rule with a fault", "return decisions, leave the graph alone"},
      {C::bad_parallel_num, "a text of numbers of parallel streams that cannot be read", "a misspelt name or number in it",
       "the message shows the piece that is wrong"},
      {C::control_flow, "an If, Loop, Scan or jump whose parts do not fit", "a body with other inputs or outputs than its node passes",
       "compare the node's inputs and outputs with its bodies'"},
      {C::syntax, "text that the grammar does not know", "a misspelt keyword, a value read above its line, a bracket left open",
       "the message shows the place; docs/text-format.md has the grammar"},
      {C::bad_model, "a file that is not what its name says, or is damaged", "a cut download, a text named .onnx, a plan of another version",
       "export or copy the file again"},
      {C::io, "a file that cannot be read or written", "a wrong path, missing rights, a full disk",
       "the message names the file and the system's reason"},
      {C::usage, "a command line that does not say what to do", "a missing value, an unknown name, options that exclude each other",
       "millstream COMMAND --help"},
      {C::memory_limit, "a tensor or an arena larger than allowed, or than the system gives", "--max-memory; a dimension bound too large",
       "bind smaller dimensions with --dim, or raise --max-memory"},
      {C::plan_mismatch, "a plan that belongs to another model, or to other sizes", "the model was edited or exported again; another --dim",
       "compile the model again"},
      {C::kernel, "a kernel refused its inputs while running", "an index out of range, a division by zero of integers, input data of another shape",
       "the message names the node; look at what is fed with --input"},
      {C::race, "two accesses to one value or buffer that no wait orders", "a schedule edited by hand: a wait is missing",
       "add the wait that the line \"missing\" of millstream check names"},
      {C::deadlock, "waits that can never be satisfied", "two streams that wait for each other; a record behind the wait it serves",
       "turn one of the two waits around, or move the record up"},
      {C::shape, "shapes or types that an operator does not take", "a wrong size in the text, --dim values that do not fit each other",
       "compare the shapes in the message with the operator's definition"},
      {C::bad_graph, "a graph that is no graph of dependencies", "a circle, a value read before it is made, two nodes of one name",
       "the message names the nodes; an edge that closes a loop is written loopback A -> B"},
      {C::bad_target, "a target file with an unknown key or a value out of range", "a spelling mistake in a TOML file",
       "the message shows line and column; docs/targets.md lists the keys"},
      {C::cancelled, "a run was stopped before its end", "the program that embeds millstream cancelled it; the command line never does",
       "run again"},
      {C::expectation, "an output differs from what was expected", "--expect data made by other weights or other inputs; tolerances too small",
       "the line DIFFERS says where; --rtol and --atol set the tolerances"},
      {C::no_effect, "a warning: what was asked for is taken, but changes nothing or costs more than it gains",
       "--force-streams where one stream is predicted faster; options that a given plan makes useless; a label that loses against another",
       "drop what the message names, or leave it: the result is right either way"},
      {C::internal, "a fault of millstream itself", "a broken promise between its parts", "report it with the command and the model"},
  };
  return rows;
}

const ErrorAdvice* find_advice(std::string_view number) {
  for (const ErrorAdvice& row : error_advice()) {
    const std::string_view own = error_code_info(row.code).number;
    if (own.size() == number.size() && std::toupper(static_cast<unsigned char>(number[0])) == own[0] && number.substr(1) == own.substr(1)) return &row;
  }
  return nullptr;
}

std::string error_table_markdown() {
  std::string out = "| number | word | exit status | meaning | usual cause | remedy |\n|---|---|---|---|---|---|\n";
  for (const ErrorAdvice& row : error_advice()) {
    const ErrorCodeInfo& info = error_code_info(row.code);
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", info.number, info.word, info.exit_status, row.meaning, row.cause, row.remedy);
  }
  return out;
}

}  // namespace millstream::cli
