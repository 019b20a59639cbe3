// SPDX-License-Identifier: Apache-2.0
// How a compiled graph uses streams, under the names of the Ascend graph interface. Link libge_compiler.so.
//
//   auto compiled = ge::CompiledGraphSummary::FromPlan("net.plan");
//   std::shared_ptr<ge::StreamAllocationSummary> streams;
//   if (compiled->GetStreamAllocationSummary(streams) != ge::SUCCESS) puts(compiled->GetErrorMessage().GetString());
//
// Every getter goes by graph name (the root and its subgraphs) and, in each list, by logical stream id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ge/ge_status.h"
#include "graph/ascend_string.h"

namespace ge {

/// One logical stream of one graph. A value.
class LogicalStreamAllocationInfo {
 public:
  /// Everything below in one line: "logic_stream_id: 0, user_stream_label: , ...".
  AscendString ToStringInfo() const { return text_; }
  std::int64_t GetLogicalStreamId() const { return id_; }
  AscendString GetUsrStreamLabel() const { return label_; }  ///< empty: none
  bool IsAssignedByStreamPass() const { return by_pass_; }
  std::vector<std::int64_t> GetAttachedStreamIds() const { return attached_; }  ///< ascending
  std::size_t GetPhysicalStreamNum() const { return physical_; }  ///< 0: the graph has no node on it
  std::size_t GetHcclFollowedStreamNum() const { return followed_; }
  /// Names of its nodes in execution order, without those that synchronise.
  std::vector<AscendString> GetAllNodes() const { return nodes_; }

 private:
  friend class CompiledGraphSummary;
  AscendString text_, label_;
  std::int64_t id_ = 0;
  bool by_pass_ = false;
  std::vector<std::int64_t> attached_;
  std::size_t physical_ = 0, followed_ = 0;
  std::vector<AscendString> nodes_;
};

class StreamAllocationSummary {
 public:
  template <class T>
  using ByGraph = std::map<AscendString, T>;

  const ByGraph<std::vector<LogicalStreamAllocationInfo>>& GetAllLogicalStreamInfos() const { return infos_; }
  ByGraph<std::vector<AscendString>> GetUsrStreamLabels() const { return each<AscendString>(&LogicalStreamAllocationInfo::GetUsrStreamLabel); }
  ByGraph<std::vector<std::size_t>> GetPhysicalStreamNums() const { return each<std::size_t>(&LogicalStreamAllocationInfo::GetPhysicalStreamNum); }
  ByGraph<std::vector<std::vector<std::int64_t>>> GetAttachedStreamIds() const {
    return each<std::vector<std::int64_t>>(&LogicalStreamAllocationInfo::GetAttachedStreamIds);
  }
  ByGraph<std::vector<std::size_t>> GetHcclFollowedStreamNums() const {
    return each<std::size_t>(&LogicalStreamAllocationInfo::GetHcclFollowedStreamNum);
  }
  ByGraph<std::vector<bool>> IsAssignedByStreamPass() const { return each<bool>(&LogicalStreamAllocationInfo::IsAssignedByStreamPass); }
  ByGraph<std::vector<std::vector<AscendString>>> GetAllNodes() const {
    return each<std::vector<AscendString>>(&LogicalStreamAllocationInfo::GetAllNodes);
  }
  ByGraph<std::vector<AscendString>> ToStringInfo() const { return each<AscendString>(&LogicalStreamAllocationInfo::ToStringInfo); }
  /// What the streams run, in order: "stream 0: a !e0 b" lines. Under the root's name all of it, under a subgraph's name
  /// what runs its nodes, with the waits before and the records behind them.
  const ByGraph<AscendString>& GetStreamGraphs() const { return graphs_; }
  /// One sentence for each place where a logical stream goes on on another physical stream.
  const std::vector<AscendString>& GetSplitReasons() const { return splits_; }

 private:
  friend class CompiledGraphSummary;
  template <class T, class Getter>
  ByGraph<std::vector<T>> each(Getter getter) const {
    ByGraph<std::vector<T>> out;
    for (const auto& entry : infos_) {
      std::vector<T>& list = out[entry.first];
      for (const LogicalStreamAllocationInfo& info : entry.second) list.push_back((info.*getter)());
    }
    return out;
  }
  ByGraph<std::vector<LogicalStreamAllocationInfo>> infos_;
  ByGraph<AscendString> graphs_;
  std::vector<AscendString> splits_;
};

class CompiledGraphSummary {
 public:
  /// Of no graph: every query fails with "graph is not compiled".
  CompiledGraphSummary() = default;

  /// Of a plan that `millstream compile MODEL -o FILE.plan` wrote. `model` is the model it was made from; without it,
  /// where the plan says it lies. Never null: when the plan cannot be read or is not sound, queries fail and
  /// GetErrorMessage says why.
  static std::shared_ptr<CompiledGraphSummary> FromPlan(const char* plan, const char* model = nullptr);

  bool IsStatic() const { return is_static_; }
  Status GetStreamNum(std::size_t& num) const;  ///< physical streams
  Status GetEventNum(std::size_t& num) const;   ///< event ids
  Status GetNotifyNum(std::size_t& num) const;  ///< notify ids
  Status GetPairNum(std::size_t& num) const;    ///< pairs of record and wait that are kept, those of splits not counted
  /// Pairs that the three rules of Graph Engine would keep. Fails where the rule chain did not decide.
  Status GetCompatPairNum(std::size_t& num) const;
  Status GetStreamAllocationSummary(std::shared_ptr<StreamAllocationSummary>& summary) const;
  /// Empty when queries succeed.
  AscendString GetErrorMessage() const { return error_; }

 private:
  std::shared_ptr<StreamAllocationSummary> summary_;
  AscendString error_ = "graph is not compiled";
  bool is_static_ = true;
  bool counted_ = false;
  std::size_t streams_ = 0, events_ = 0, notifies_ = 0, pairs_ = 0, compat_pairs_ = 0;
};

}  // namespace ge
