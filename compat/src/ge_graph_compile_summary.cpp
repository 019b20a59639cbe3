// SPDX-License-Identifier: Apache-2.0
#include "ge/ge_graph_compile_summary.h"

#include <filesystem>

#include <fmt/format.h>

#include "millstream/compile/compile.h"
#include "millstream/import/import.h"
#include "millstream/memory/memory_plan.h"
#include "millstream/schedule/summary.h"

namespace ge {
namespace {

namespace fs = std::filesystem;
using millstream::Error;
using millstream::Graph;
using millstream::Plan;
using millstream::Result;

struct Loaded {
  Graph graph;
  Plan plan;
};

Result<Loaded> load(const std::string& path, const std::string& model) {
  MST_TRY(Plan plan, millstream::read_plan(path));
  std::string from = model;
  if (from.empty()) {
    if (plan.model_path.empty()) {
      return Error{millstream::ErrorCode::usage, fmt::format("the plan \"{}\" does not say which model it belongs to", path)}.help(
          "name the model as the second argument");
    }
    from = (fs::path(path).parent_path() / plan.model_path).lexically_normal().string();
  }
  millstream::ImportOptions import;
  for (const auto& [name, value] : plan.dims) import.dims.emplace(name, value);
  MST_TRY(Graph graph, millstream::import_graph(from, import));
  MST_TRY(graph, millstream::graph_of_plan(std::move(graph), plan.graph_hash));
  MST_TRY_VOID(millstream::verify_plan(graph, plan, nullptr));
  return Loaded{std::move(graph), std::move(plan)};
}

AscendString text(std::string_view s) { return AscendString(s.data(), s.size()); }

}  // namespace

std::shared_ptr<CompiledGraphSummary> CompiledGraphSummary::FromPlan(const char* plan, const char* model) {
  auto out = std::make_shared<CompiledGraphSummary>();
  const Result<Loaded> loaded = load(plan == nullptr ? "" : plan, model == nullptr ? "" : model);
  if (!loaded.ok()) {
    out->error_ = text(millstream::to_string(loaded.error()));
    return out;
  }
  const Graph& graph = loaded->graph;
  const millstream::AllocationSummary summary =
      millstream::summarize(graph, loaded->plan.assignment, loaded->plan.sync, loaded->plan.schedule);
  auto streams = std::make_shared<StreamAllocationSummary>();
  for (const millstream::GraphSummary& g : summary.graphs) {
    std::vector<LogicalStreamAllocationInfo>& infos = streams->infos_[text(g.name)];
    for (const millstream::StreamSummary& s : g.streams) {
      LogicalStreamAllocationInfo info;
      info.text_ = text(s.to_string_info());
      info.label_ = text(s.user_label);
      info.id_ = s.id;
      info.by_pass_ = s.assigned_by_pass;
      info.attached_.assign(s.attached.begin(), s.attached.end());
      info.physical_ = s.physical;
      info.followed_ = s.followed;
      for (const millstream::NodeId n : s.nodes) info.nodes_.push_back(text(graph.name(n)));
      infos.push_back(std::move(info));
    }
  }
  const std::vector<std::string> texts = millstream::print_by_graph(graph, loaded->plan.schedule);
  for (std::size_t g = 0; g < texts.size(); ++g) streams->graphs_[text(summary.graphs[g].name)] = text(texts[g]);
  for (const std::string& reason : summary.splits) streams->splits_.push_back(text(reason));
  out->summary_ = std::move(streams);
  out->error_ = "";
  out->is_static_ = !graph.dynamic();
  out->streams_ = summary.streams;
  out->events_ = summary.events;
  out->notifies_ = summary.notifies;
  out->pairs_ = summary.pairs;
  out->counted_ = summary.compat.has_value();
  if (summary.compat) out->compat_pairs_ = summary.compat->kept();
  return out;
}

Status CompiledGraphSummary::GetStreamNum(std::size_t& num) const {
  if (!summary_) return FAILED;
  num = streams_;
  return SUCCESS;
}

Status CompiledGraphSummary::GetEventNum(std::size_t& num) const {
  if (!summary_) return FAILED;
  num = events_;
  return SUCCESS;
}

Status CompiledGraphSummary::GetNotifyNum(std::size_t& num) const {
  if (!summary_) return FAILED;
  num = notifies_;
  return SUCCESS;
}

Status CompiledGraphSummary::GetPairNum(std::size_t& num) const {
  if (!summary_) return FAILED;
  num = pairs_;
  return SUCCESS;
}

Status CompiledGraphSummary::GetCompatPairNum(std::size_t& num) const {
  if (!counted_) return FAILED;
  num = compat_pairs_;
  return SUCCESS;
}

Status CompiledGraphSummary::GetStreamAllocationSummary(std::shared_ptr<StreamAllocationSummary>& summary) const {
  if (!summary_) return FAILED;
  summary = summary_;
  return SUCCESS;
}

}  // namespace ge
