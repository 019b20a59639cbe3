// SPDX-License-Identifier: Apache-2.0
// Every getter of the summary, one a line.
#include <ge/ge_graph_compile_summary.h>

#include <iostream>

template <class T>
void show(const T& value) { std::cout << ' ' << value; }
template <class T>
void show(const std::vector<T>& values) {
  std::cout << " [";
  for (const T& value : values) show(value);
  std::cout << " ]";
}
void show(const std::vector<bool>& values) {
  for (const bool value : values) std::cout << ' ' << (value ? "yes" : "no");
}
template <class T>
void by_graph(const char* name, const std::map<ge::AscendString, T>& map) {
  for (const auto& [graph, value] : map) {
    std::cout << name << ' ' << graph << ':';
    show(value);
    std::cout << '\n';
  }
}

int main(int argc, char** argv) {
  const auto compiled = argc > 1 ? ge::CompiledGraphSummary::FromPlan(argv[1]) : std::make_shared<ge::CompiledGraphSummary>();
  std::shared_ptr<ge::StreamAllocationSummary> streams;
  if (compiled->GetStreamAllocationSummary(streams) != ge::SUCCESS) {
    std::size_t none = 0;
    const bool all_fail = compiled->GetStreamNum(none) == ge::FAILED && compiled->GetEventNum(none) == ge::FAILED &&
                          compiled->GetNotifyNum(none) == ge::FAILED && compiled->GetPairNum(none) == ge::FAILED &&
                          compiled->GetCompatPairNum(none) == ge::FAILED;
    std::cout << compiled->GetErrorMessage() << (all_fail ? "\n" : " but a query succeeds\n");
    return 1;
  }
  std::size_t n[5] = {};
  const bool counted = compiled->GetStreamNum(n[0]) == ge::SUCCESS && compiled->GetEventNum(n[1]) == ge::SUCCESS &&
                       compiled->GetNotifyNum(n[2]) == ge::SUCCESS && compiled->GetPairNum(n[3]) == ge::SUCCESS;
  const bool compat = compiled->GetCompatPairNum(n[4]) == ge::SUCCESS;
  std::cout << (counted ? "counts" : "no counts") << ' ' << n[0] << ' ' << n[1] << ' ' << n[2] << ' ' << n[3] << ' '
            << (compat ? std::to_string(n[4]) : "-") << (compiled->IsStatic() ? " static" : " dynamic")
            << (compiled->GetErrorMessage() == "" ? "\n" : " and an error\n");
  for (const auto& [graph, infos] : streams->GetAllLogicalStreamInfos()) {
    for (const ge::LogicalStreamAllocationInfo& i : infos) {
      std::cout << graph << ' ' << i.GetLogicalStreamId() << " '" << i.GetUsrStreamLabel() << "' " << i.IsAssignedByStreamPass();
      show(i.GetAttachedStreamIds());
      std::cout << ' ' << i.GetPhysicalStreamNum() << ' ' << i.GetHcclFollowedStreamNum();
      show(i.GetAllNodes());
      std::cout << '\n' << graph << ": " << i.ToStringInfo() << '\n';
    }
  }
  by_graph("labels", streams->GetUsrStreamLabels());
  by_graph("physical", streams->GetPhysicalStreamNums());
  by_graph("attached", streams->GetAttachedStreamIds());
  by_graph("followed", streams->GetHcclFollowedStreamNums());
  by_graph("by pass", streams->IsAssignedByStreamPass());
  by_graph("nodes", streams->GetAllNodes());
  by_graph("lines", streams->ToStringInfo());
  for (const auto& [graph, text] : streams->GetStreamGraphs()) std::cout << "lanes " << graph << ":\n" << text;
  for (const ge::AscendString& reason : streams->GetSplitReasons()) std::cout << "split " << reason << '\n';
}
