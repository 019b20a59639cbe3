// SPDX-License-Identifier: Apache-2.0
// The functions of mst_host_api. A handle is the number of its session and, in the low bits, of its node or graph, both from
// 1; it is looked up among the living sessions and never followed.
#include <algorithm>
#include <mutex>

#include "millstream/pass/session.h"

namespace millstream {
namespace {

static_assert(sizeof(void*) == 8, "handles are numbers of 64 bits");
constexpr int kNodeBits = 40;
constexpr std::uint64_t kNodeMask = (std::uint64_t{1} << kNodeBits) - 1;
constexpr std::uint64_t kSessionMask = 0xffffff;

// Sessions that live. A call holds the mutex, so that none ends under it.
struct Living {
  std::mutex mutex;
  std::uint64_t last = 0;
  std::vector<std::pair<std::uint64_t, PassSession*>> sessions;
};
Living& living() {
  static Living all;
  return all;
}

template <class Handle>
Handle* handle(std::uint64_t session, std::uint64_t number) {
  return reinterpret_cast<Handle*>((session << kNodeBits) | (number + 1));
}
std::uint64_t number_of(const void* handle) { return (reinterpret_cast<std::uint64_t>(handle) & kNodeMask) - 1; }

mst_str str(std::string_view text) { return {text.data(), text.size()}; }

void write_tensor(const Tensor& t, mst_tensor& out) {
  out.dtype = static_cast<std::int32_t>(t.dtype());
  out.rank = t.shape().size();
  out.dims = t.shape().data();
  out.data = t.bytes();
  out.bytes = t.byte_size();
}

}  // namespace

struct HostCalls {
  /// Calls use(session) if the handle's session lives, else gives `otherwise`.
  template <class R, class Use>
  static R with(const void* handle, R otherwise, Use use) {
    const std::uint64_t id = reinterpret_cast<std::uint64_t>(handle) >> kNodeBits;
    Living& all = living();
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (const auto& [number, session] : all.sessions) {
      if (number == id) return use(*session);
    }
    return otherwise;
  }
  template <class R, class Use>
  static R with_node(const mst_node* node, R otherwise, Use use) {
    return with(node, otherwise, [&](PassSession& s) {
      const PassSession::Place at = s.place(number_of(node));
      return at.tree == nullptr ? otherwise : use(s, at);
    });
  }
  static const mst_node* node_handle(const PassSession& s, std::uint64_t number) { return handle<const mst_node>(s.id_, number); }
  static std::optional<ValueId> value_at(const PassSession::Place& at, std::int32_t side, std::size_t port) {
    const Graph& graph = *at.tree->graph;
    if (side == MST_INPUTS) return port < graph.inputs(at.node).size() ? graph.inputs(at.node)[port].get() : std::nullopt;
    const auto outputs = graph.outputs(at.node);
    return port < outputs.size() ? std::optional<ValueId>(ValueId((*outputs.begin()).index + port)) : std::nullopt;
  }

  // -- graphs
  static std::int32_t graph_name(const mst_graph* graph, mst_str* name) {
    return with(graph, std::int32_t{-1}, [&](PassSession& s) {
      const std::uint64_t view = number_of(graph);
      if (view >= s.views_.size()) return -1;
      const Graph& of = *s.trees_[s.views_[view].tree].graph;
      const ScopeId scope = s.views_[view].scope;
      *name = str(scope.index == 0 ? std::string_view(of.name()) : std::string_view(of.scope(scope).name));
      return 0;
    });
  }
  static std::size_t graph_node_count(const mst_graph* graph, std::int32_t which) {
    return with(graph, std::size_t{0}, [&](PassSession& s) {
      const std::uint64_t view = number_of(graph);
      return view < s.views_.size() ? s.nodes_of(view, which == MST_ALL_NODES).size() : 0;
    });
  }
  static const mst_node* graph_node(const mst_graph* graph, std::int32_t which, std::size_t i) {
    return with(graph, static_cast<const mst_node*>(nullptr), [&](PassSession& s) -> const mst_node* {
      const std::uint64_t view = number_of(graph);
      if (view >= s.views_.size()) return nullptr;
      const auto& nodes = s.nodes_of(view, which == MST_ALL_NODES);
      return i < nodes.size() ? node_handle(s, nodes[i]) : nullptr;
    });
  }

  // -- nodes
  static std::int32_t node_name(const mst_node* node, mst_str* name) {
    return with_node(node, std::int32_t{-1}, [&](PassSession&, const PassSession::Place& at) {
      *name = str(at.tree->graph->name(at.node));
      return 0;
    });
  }
  static std::int32_t node_type(const mst_node* node, mst_str* type) {
    return with_node(node, std::int32_t{-1}, [&](PassSession&, const PassSession::Place& at) {
      *type = str(at.tree->graph->type(at.node));
      return 0;
    });
  }
  static std::size_t node_port_count(const mst_node* node, std::int32_t side) {
    return with_node(node, std::size_t{0}, [&](PassSession&, const PassSession::Place& at) {
      const Graph& graph = *at.tree->graph;
      return side == MST_INPUTS ? graph.inputs(at.node).size() : graph.outputs(at.node).size();
    });
  }
  static std::int32_t node_producer(const mst_node* node, std::size_t input, mst_port* from) {
    return with_node(node, std::int32_t{-1}, [&](PassSession& s, const PassSession::Place& at) {
      const Graph& graph = *at.tree->graph;
      if (input >= graph.inputs(at.node).size()) return -1;
      *from = {nullptr, -1};
      const auto value = value_at(at, MST_INPUTS, input);
      const auto producer = value ? graph.producer(*value) : std::nullopt;
      if (producer) {
        const std::uint32_t first = (*graph.outputs(*producer).begin()).index;
        *from = {node_handle(s, at.tree->first + producer->index), static_cast<std::int32_t>(value->index - first)};
      }
      return 0;
    });
  }
  static std::size_t node_consumer_count(const mst_node* node, std::size_t output) {
    return with_node(node, std::size_t{0}, [&](PassSession&, const PassSession::Place& at) -> std::size_t {
      const auto value = value_at(at, MST_OUTPUTS, output);
      if (!value) return 0;
      PassSession::index_consumers(*at.tree);
      return at.tree->consumer_begin[value->index + 1] - at.tree->consumer_begin[value->index];
    });
  }
  static std::int32_t node_consumer(const mst_node* node, std::size_t output, std::size_t i, mst_port* to) {
    return with_node(node, std::int32_t{-1}, [&](PassSession& s, const PassSession::Place& at) {
      const auto value = value_at(at, MST_OUTPUTS, output);
      if (!value) return -1;
      PassSession::index_consumers(*at.tree);
      const std::uint32_t begin = at.tree->consumer_begin[value->index];
      if (i >= at.tree->consumer_begin[value->index + 1] - begin) return -1;
      const auto& [reader, port] = at.tree->consumers[begin + i];
      *to = {node_handle(s, at.tree->first + reader.index), static_cast<std::int32_t>(port)};
      return 0;
    });
  }
  static std::size_t node_control_count(const mst_node* node, std::int32_t side) {
    if (side != MST_INPUTS && side != MST_OUTPUTS) return 0;
    return with_node(node, std::size_t{0}, [&](PassSession&, const PassSession::Place& at) -> std::size_t {
      PassSession::index_control(*at.tree);
      const auto& begin = at.tree->control_begin[side];
      return begin[at.node.index + 1] - begin[at.node.index];
    });
  }
  static const mst_node* node_control(const mst_node* node, std::int32_t side, std::size_t i) {
    if (side != MST_INPUTS && side != MST_OUTPUTS) return nullptr;
    return with_node(node, static_cast<const mst_node*>(nullptr), [&](PassSession& s, const PassSession::Place& at) -> const mst_node* {
      PassSession::index_control(*at.tree);
      const auto& begin = at.tree->control_begin[side];
      if (i >= begin[at.node.index + 1] - begin[at.node.index]) return nullptr;
      return node_handle(s, at.tree->first + at.tree->control[side][begin[at.node.index] + i].index);
    });
  }
  static std::int32_t node_desc(const mst_node* node, std::int32_t side, std::size_t port, mst_desc* desc, std::int64_t* dims,
                                std::size_t capacity) {
    return with_node(node, std::int32_t{-1}, [&](PassSession&, const PassSession::Place& at) {
      const auto value = value_at(at, side, port);
      if (!value) return -1;
      const TensorDesc& from = at.tree->graph->desc(*value);
      desc->dtype = static_cast<std::int32_t>(from.dtype);
      desc->rank = from.shape ? static_cast<std::int32_t>(from.shape->size()) : -1;
      if (from.shape) {
        for (std::size_t i = 0; i < from.shape->size() && i < capacity; ++i) dims[i] = (*from.shape)[i].value.value_or(-1);
      }
      return 0;
    });
  }
  static std::int32_t node_port_name(const mst_node* node, std::int32_t side, std::size_t port, mst_str* name) {
    return with_node(node, std::int32_t{-1}, [&](PassSession&, const PassSession::Place& at) {
      const auto value = value_at(at, side, port);
      if (!value) return -1;
      *name = str(at.tree->graph->name(*value));
      return 0;
    });
  }
  static std::int32_t node_constant(const mst_node* node, std::size_t input, mst_tensor* out) {
    return with_node(node, std::int32_t{-1}, [&](PassSession&, const PassSession::Place& at) {
      const auto value = value_at(at, MST_INPUTS, input);
      const Tensor* tensor = value ? at.tree->graph->constant(*value) : nullptr;
      if (tensor == nullptr) return -1;
      write_tensor(*tensor, *out);
      return 0;
    });
  }
  /// Labels and costs are annotations here; they go by the names that they have as attributes elsewhere.
  static bool note(const PassSession::Place& at, std::string_view name, mst_attr& out) {
    const Graph& graph = *at.tree->graph;
    const Annotations& notes = graph.annotations();
    const auto text = [&](const SideTable<NodeId, StringId>& table) {
      const auto& id = table.get(at.node);
      if (!id) return false;
      out.kind = MST_ATTR_STRING;
      out.s = str(graph.text(*id));
      return true;
    };
    if (name == "_stream_label") return text(notes.label);
    if (name == "_user_stream_label") return text(notes.user_label);
    if (name == "_parallel_group") return text(notes.parallel_group);
    if (name == "_cost_us") {
      const auto& us = notes.cost.get(at.node);
      if (!us) return false;
      out.kind = MST_ATTR_FLOAT;
      out.f = static_cast<float>(*us);
      return true;
    }
    if (name != "_user_stream_priority" || !notes.priority.get(at.node)) return false;
    out.kind = MST_ATTR_INT;
    out.i = *notes.priority.get(at.node);
    return true;
  }
  static std::int32_t node_attr(const mst_node* node, mst_str name, mst_attr* out) {
    return with_node(node, std::int32_t{-1}, [&](PassSession&, const PassSession::Place& at) {
      const std::string_view key(name.data, name.size);
      const Attr* attr = at.tree->graph->attrs(at.node).find(key);
      if (attr == nullptr) return note(at, key, *out) ? 0 : -1;
      out->kind = static_cast<std::int32_t>(attr->index()) + 1;  // the kinds stand in the order of Attr's types
      if (const auto* i = std::get_if<std::int64_t>(attr)) out->i = *i;
      if (const auto* f = std::get_if<float>(attr)) out->f = *f;
      if (const auto* s = std::get_if<std::string>(attr)) out->s = str(*s);
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(attr)) {
        out->ints = list->data();
        out->count = list->size();
      }
      if (const auto* list = std::get_if<std::vector<float>>(attr)) {
        out->floats = list->data();
        out->count = list->size();
      }
      if (const auto* list = std::get_if<std::vector<std::string>>(attr)) out->count = list->size();
      if (const auto* t = std::get_if<Tensor>(attr)) write_tensor(*t, out->tensor);
      return 0;
    });
  }
  static std::int32_t node_attr_string(const mst_node* node, mst_str name, std::size_t i, mst_str* out) {
    return with_node(node, std::int32_t{-1}, [&](PassSession&, const PassSession::Place& at) {
      const Attr* attr = at.tree->graph->attrs(at.node).find(std::string_view(name.data, name.size));
      const auto* list = attr == nullptr ? nullptr : std::get_if<std::vector<std::string>>(attr);
      if (list == nullptr || i >= list->size()) return -1;
      *out = str((*list)[i]);
      return 0;
    });
  }
  static std::size_t node_subgraph_count(const mst_node* node) {
    return with_node(node, std::size_t{0}, [&](PassSession& s, const PassSession::Place& at) { return s.views_under(at).size(); });
  }
  static const mst_graph* node_subgraph(const mst_node* node, std::size_t i) {
    return with_node(node, static_cast<const mst_graph*>(nullptr), [&](PassSession& s, const PassSession::Place& at) -> const mst_graph* {
      const std::vector<std::size_t> views = s.views_under(at);
      return i < views.size() ? handle<const mst_graph>(s.id_, views[i]) : nullptr;
    });
  }

  // -- the context
  static std::int64_t ctx_next_stream(mst_stream_ctx* ctx) {
    return with(ctx, std::int64_t{-1}, [](PassSession& s) -> std::int64_t {
      constexpr std::size_t kMost = 1u << 20;  // far above what any device has
      if (s.on_.streams.size() >= kMost) {
        s.refuse("AllocateNextStreamId: there are 1048576 streams already");
        return -1;
      }
      return s.on_.new_stream().index;
    });
  }
  static std::int64_t ctx_max_stream(const mst_stream_ctx* ctx) {
    return with(ctx, std::int64_t{-1}, [](PassSession& s) { return static_cast<std::int64_t>(s.on_.streams.size()) - 1; });
  }
  static std::int32_t ctx_set_stream(mst_stream_ctx* ctx, const mst_node* node, std::int64_t id) {
    return with(ctx, std::int32_t{-1}, [&](PassSession& s) {
      const bool own = reinterpret_cast<std::uint64_t>(node) >> kNodeBits == s.id_;
      return s.set_stream(own ? number_of(node) : ~std::uint64_t{0}, id);
    });
  }
  static std::int64_t ctx_get_stream(const mst_stream_ctx* ctx, const mst_node* node) {
    return with(ctx, std::int64_t{-1}, [&](PassSession& s) -> std::int64_t {
      if (reinterpret_cast<std::uint64_t>(node) >> kNodeBits != s.id_) return -1;
      const PassSession::Place at = s.place(number_of(node));
      if (at.tree != s.trees_.data()) return -1;  // of no graph, or in a body that is one task here
      const auto& placement = s.on_.placement[at.node];
      return placement ? static_cast<std::int64_t>(placement->stream.index) : -1;
    });
  }
  static void ctx_set_error(mst_stream_ctx* ctx, mst_str message) {
    with(ctx, 0, [&](PassSession& s) {
      constexpr std::size_t kMost = 20;
      if (s.messages_.size() < kMost) s.messages_.emplace_back(message.data, message.size);
      return 0;
    });
  }
  static std::int32_t ctx_option(const mst_stream_ctx* ctx, mst_str key, mst_str* value) {
    return with(ctx, std::int32_t{-1}, [&](PassSession& s) {
      const auto at = std::find_if(s.values_.rbegin(), s.values_.rend(),
                                   [&](const auto& entry) { return entry.first == std::string_view(key.data, key.size); });
      if (at == s.values_.rend()) return -1;
      *value = str(at->second);
      return 0;
    });
  }
};

const mst_host_api& host_api() {
  static const mst_host_api api = {
      sizeof(mst_host_api),         MST_PASS_ABI_MAJOR,           MST_PASS_ABI_MINOR,          HostCalls::graph_name,
      HostCalls::graph_node_count,  HostCalls::graph_node,        HostCalls::node_name,        HostCalls::node_type,
      HostCalls::node_port_count,   HostCalls::node_producer,     HostCalls::node_consumer_count, HostCalls::node_consumer,
      HostCalls::node_control_count, HostCalls::node_control,     HostCalls::node_desc,        HostCalls::node_port_name,
      HostCalls::node_constant,     HostCalls::node_attr,         HostCalls::node_attr_string, HostCalls::node_subgraph_count,
      HostCalls::node_subgraph,     HostCalls::ctx_next_stream,   HostCalls::ctx_max_stream,   HostCalls::ctx_set_stream,
      HostCalls::ctx_get_stream,    HostCalls::ctx_set_error,     HostCalls::ctx_option};
  return api;
}

PassSession::PassSession(const Graph& graph, ScopeId scope, StreamAssignment on, RuleId rule,
                         const std::vector<std::pair<std::string, std::string>>& values)
    : own_view_(scope.index), on_(std::move(on)), rule_(rule), values_(values) {
  add_tree(graph);
  Living& all = living();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.last = all.last % kSessionMask + 1;
  id_ = all.last;
  all.sessions.emplace_back(id_, this);
}

void PassSession::end() {
  Living& all = living();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::erase_if(all.sessions, [&](const auto& entry) { return entry.second == this; });
}

PassSession::~PassSession() { end(); }

const mst_graph* PassSession::graph() const { return handle<const mst_graph>(id_, own_view_); }
mst_stream_ctx* PassSession::context() const { return handle<mst_stream_ctx>(id_, 0); }

}  // namespace millstream
