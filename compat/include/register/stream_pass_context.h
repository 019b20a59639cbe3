// SPDX-License-Identifier: Apache-2.0
// What a stream pass decides with. Header only.
#pragma once

#include <cstdint>
#include <vector>

#include "../ge/ge_status.h"
#include "../graph/graph.h"

namespace ge __attribute__((visibility("hidden"))) {

class CustomPassContext {
 public:
  CustomPassContext() = default;
  CustomPassContext(const CustomPassContext&) = delete;
  CustomPassContext& operator=(const CustomPassContext&) = delete;
  virtual ~CustomPassContext() = default;

  /// Said beside the pass's name and code where it fails.
  void SetErrorMessage(const AscendString& message) {
    if (api_ != nullptr) api_->ctx_set_error(context_, detail::str_of(message));
  }
  /// An option of the compilation by any of its names, as it was given. Failure where it was not.
  graphStatus GetOptionValue(const AscendString& key, AscendString& value) const {
    mst_str s = {nullptr, 0};
    if (api_ == nullptr || api_->ctx_option(context_, detail::str_of(key), &s) != 0) return GRAPH_FAILED;
    value = detail::text_of(s);
    return GRAPH_SUCCESS;
  }
  void SetPassName(const AscendString& name) { pass_name_ = name; }
  AscendString GetPassName() const { return pass_name_; }

 protected:
  CustomPassContext(const mst_host_api* api, mst_stream_ctx* context) : api_(api), context_(context) {}
  const mst_host_api* api_ = nullptr;
  mst_stream_ctx* context_ = nullptr;

 private:
  AscendString pass_name_;
};

/// Streams are the logical ones, numbered from 0.
class StreamPassContext : public CustomPassContext {
 public:
  /// On its own, for tests of a pass: counts from the given maximum and keeps streams by node name.
  explicit StreamPassContext(std::int64_t current_max_stream_id) : max_(current_max_stream_id) {}

  /// A new stream: the maximum grows by one.
  std::int64_t AllocateNextStreamId() {
    if (api_ != nullptr) return api_->ctx_next_stream(context_);
    return max_ < INT64_MAX ? ++max_ : -1;
  }
  /// Nodes of one stream run one after the other. Failure, and nothing changes, where the id is negative or above the
  /// maximum, or the node is not a direct node of the graph that the pass was given.
  graphStatus SetStreamId(const GNode& node, std::int64_t stream_id) {
    if (api_ != nullptr) return api_->ctx_set_stream(context_, node.node_, stream_id) == 0 ? GRAPH_SUCCESS : GRAPH_FAILED;
    AscendString name;
    if (stream_id < 0 || stream_id > max_ || node.GetName(name) != GRAPH_SUCCESS) return GRAPH_FAILED;
    for (Placed& placed : placed_) {
      if (placed.node != name) continue;
      placed.stream = stream_id;
      return GRAPH_SUCCESS;
    }
    placed_.push_back(Placed{name, stream_id});
    return GRAPH_SUCCESS;
  }
  /// With what was set before; -1 for a node without a stream.
  std::int64_t GetStreamId(const GNode& node) const {
    if (api_ != nullptr) return api_->ctx_get_stream(context_, node.node_);
    AscendString name;
    if (node.GetName(name) != GRAPH_SUCCESS) return -1;
    for (const Placed& placed : placed_) {
      if (placed.node == name) return placed.stream;
    }
    return -1;
  }
  std::int64_t GetCurrMaxStreamId() const { return api_ != nullptr ? api_->ctx_max_stream(context_) : max_; }

 private:
  friend struct PassThunk;
  StreamPassContext(const mst_host_api* api, mst_stream_ctx* context) : CustomPassContext(api, context) {}
  static ConstGraphPtr graph(const mst_host_api* api, const mst_graph* graph) { return ConstGraphPtr(new Graph(api, graph)); }

  struct Placed {
    AscendString node;
    std::int64_t stream;
  };
  std::int64_t max_ = -1;
  std::vector<Placed> placed_;
};

}  // namespace ge
