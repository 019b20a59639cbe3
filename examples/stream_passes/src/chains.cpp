// SPDX-License-Identifier: Apache-2.0
// Places every node anew. The costliest chain of nodes, each feeding the next, goes on a stream of its own; then the costliest
// of what is left; and so on. From the fifth chain on the stream with the least work so far takes it.
#include <register/register_custom_pass.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kStreams = 4;

struct Work {
  std::vector<ge::GNode> nodes;  // in topological order
  std::vector<float> cost;
  std::vector<std::vector<std::size_t>> sources;  // by node: what it needs, data and control
};

std::string NameOf(const ge::GNode& node) {
  ge::AscendString name;
  node.GetName(name);
  return name.GetString();
}

Work Read(const ge::ConstGraphPtr& graph) {
  Work work;
  work.nodes = graph->GetDirectNode();
  std::map<std::string, std::size_t> index;
  for (std::size_t n = 0; n < work.nodes.size(); ++n) index[NameOf(work.nodes[n])] = n;
  for (const ge::GNode& node : work.nodes) {
    float us = 1;  // where neither the graph nor a profile says
    node.GetAttr("_cost_us", us);
    work.cost.push_back(us);
    std::vector<ge::GNodePtr> from = node.GetInControlNodes();
    for (std::size_t i = 0; i < node.GetInputsSize(); ++i) {
      const ge::GNodePtr source = node.GetInDataNodesAndPortIndexs(static_cast<std::int32_t>(i)).first;
      if (source) from.push_back(source);
    }
    work.sources.emplace_back();
    for (const ge::GNodePtr& source : from) {
      const auto at = index.find(NameOf(*source));
      if (at != index.end()) work.sources.back().push_back(at->second);
    }
  }
  return work;
}

// The costliest chain of nodes that are not placed yet, backwards.
std::vector<std::size_t> CostliestChain(const Work& work, const std::vector<bool>& placed) {
  const std::size_t none = work.nodes.size();
  std::vector<float> until(work.nodes.size(), 0);
  std::vector<std::size_t> before(work.nodes.size(), none);
  std::size_t end = none;
  for (std::size_t n = 0; n < work.nodes.size(); ++n) {
    if (placed[n]) continue;
    for (const std::size_t source : work.sources[n]) {
      if (placed[source] || (before[n] != none && until[source] <= until[before[n]])) continue;
      before[n] = source;
    }
    until[n] = work.cost[n] + (before[n] == none ? 0 : until[before[n]]);
    if (end == none || until[n] > until[end]) end = n;
  }
  std::vector<std::size_t> chain;
  for (std::size_t n = end; n != none; n = before[n]) chain.push_back(n);
  return chain;
}

ge::Status Chains(const ge::ConstGraphPtr& graph, ge::StreamPassContext& context) {
  const Work work = Read(graph);
  std::vector<bool> placed(work.nodes.size(), false);
  std::vector<float> load(kStreams, 0);
  for (std::size_t done = 0, chains = 0; done < work.nodes.size(); ++chains) {
    const std::vector<std::size_t> chain = CostliestChain(work, placed);
    const std::size_t stream =
        chains < kStreams ? chains : static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    while (context.GetCurrMaxStreamId() < static_cast<std::int64_t>(stream)) context.AllocateNextStreamId();
    for (const std::size_t n : chain) {
      if (context.SetStreamId(work.nodes[n], static_cast<std::int64_t>(stream)) != ge::GRAPH_SUCCESS) {
        context.SetErrorMessage(("cannot place " + NameOf(work.nodes[n])).c_str());
        return ge::FAILED;
      }
      placed[n] = true;
      load[stream] += work.cost[n];
    }
    done += chain.size();
  }
  return ge::SUCCESS;
}

}  // namespace

REGISTER_CUSTOM_PASS("chains").CustomAllocateStreamPassFn(Chains);
