// SPDX-License-Identifier: Apache-2.0
// JSON to one flat graph with scopes, a target and the options.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "tests/cases/case.h"

namespace millstream::cases {
namespace {

Error bad(const std::string& path, std::string what) { return Error{ErrorCode::syntax, fmt::format("{}: {}", path, what)}; }

std::string text_at(const Json& object, const char* key) { return object.contains(key) ? object.at(key).get<std::string>() : std::string(); }
bool flag_at(const Json& object, const char* key) { return object.contains(key) && object.at(key).get<bool>(); }

class Loader {
 public:
  explicit Loader(Case& c) : case_(c), graph_(c.graph) {}

  Result<void> load(const std::string& path) {
    const Json& json = case_.json;
    engines(json.at("engines"));
    if (json.contains("generator")) {
      MST_TRY_VOID(generate(path, json.at("generator")));
    } else if (!json.at("graphs").empty()) {
      const Json& root = json.at("graphs").at(0);
      graph_.set_name(root.at("name").get<std::string>());
      graph_.set_dynamic(text_at(root, "shape") == "dynamic");
      add_graph(root, ScopeId(0));
      graph_.set_order(std::move(order_), fixed_);
    }
    clusters();
    if (auto finished = graph_.finish(); !finished.ok()) return bad(path, finished.error().message);
    return {};
  }

 private:
  void engines(const Json& rows) {
    for (const Json& row : rows) {
      Engine engine;
      engine.name = row.at("name").get<std::string>();
      engine.scheduler = row.at("scheduler_id").get<std::string>();
      engine.independent = flag_at(row, "independent");
      engine.attach = flag_at(row, "attach");
      engine.skip = flag_at(row, "skip_assign_stream");
      // Cases of graph passes name no engines.
      engine.op_types = {"*"};
      case_.target.engines.push_back(std::move(engine));
    }
    if (rows.empty()) {
      Engine engine;
      engine.name = "any";
      engine.op_types = {"*"};
      case_.target.engines.push_back(std::move(engine));
    }
    case_.target.name = "case";
    case_.target.engines_in_input = true;
  }

  // A node, then the graphs it owns, then the next: parents before children, in execution order.
  void add_graph(const Json& g, ScopeId scope) {
    const bool listed = text_at(g, "node_order") == "as_listed";
    fixed_ = fixed_ || listed;
    std::map<std::string, const Json*> by_name;
    std::vector<std::string> names;
    for (const Json& n : g.at("nodes")) {
      names.push_back(n.at("name").get<std::string>());
      by_name[names.back()] = &n;
    }
    std::map<std::string, std::map<std::size_t, std::pair<std::string, std::size_t>>> inputs;
    std::map<std::string, std::size_t> outputs;
    for (const char* kind : {"data_edges", "back_edges"}) {
      if (!g.contains(kind)) continue;
      for (const Json& e : g.at(kind)) {
        const auto from = e.at(0).get<std::string>();
        std::size_t& count = outputs[from];
        count = std::max<std::size_t>(count, e.at(1).get<std::size_t>() + 1);
        if (std::string(kind) == "data_edges") inputs[e.at(2).get<std::string>()][e.at(3).get<std::size_t>()] = {from, e.at(1).get<std::size_t>()};
      }
    }
    // Values must exist before they are read, whatever order the case lists.
    std::vector<std::string> ready = listed ? topological(names, g) : names;
    std::vector<NodeId> created;
    for (const std::string& name : ready) {
      const Json& n = *by_name.at(name);
      std::vector<InputRef> in;
      for (const auto& [slot, source] : inputs[name]) {
        while (in.size() < slot) in.push_back(InputRef());
        in.push_back(graph_.outputs(nodes_.at(source.first))[source.second]);
      }
      std::vector<std::string> out_names;
      for (std::size_t i = 0; i < outputs[name]; ++i) out_names.push_back(i == 0 ? name : fmt::format("{}:{}", name, i));
      const std::vector<std::string_view> views(out_names.begin(), out_names.end());
      const auto type = n.at("type").get<std::string>();
      const NodeId id = graph_.add_node({type, name, in, views, {}});
      nodes_[name] = id;
      created.push_back(id);
      if (scope.index != 0) graph_.set_scope(id, scope);
      notes(id, n);
      std::vector<std::string> owned;
      if (n.contains("attrs") && n.at("attrs").contains("SUBGRAPHS")) owned = n.at("attrs").at("SUBGRAPHS").get<std::vector<std::string>>();
      for (const Json& child : case_.json.at("graphs")) {
        if (text_at(child, "parent_node") == name && std::find(owned.begin(), owned.end(), child.at("name")) == owned.end()) owned.push_back(child.at("name"));
      }
      if (!listed) order_.push_back(id);
      for (const std::string& instance : owned) own(id, scope, instance);
    }
    if (listed) {
      for (const std::string& name : names) order_.push_back(nodes_.at(name));
    }
    for (const Json& e : g.at("control_edges")) graph_.add_control_edge(nodes_.at(e.at(0).get<std::string>()), nodes_.at(e.at(1).get<std::string>()));
    if (g.contains("back_edges")) {
      for (const Json& e : g.at("back_edges")) graph_.add_loop_back_edge(nodes_.at(e.at(0).get<std::string>()), nodes_.at(e.at(2).get<std::string>()));
    }
    if (g.contains("cluster_order")) {
      for (const Json& cluster : g.at("cluster_order")) cluster_order_.push_back({scope, cluster.get<std::string>()});
    }
  }

  void own(NodeId owner, ScopeId scope, const std::string& instance) {
    for (const Json& g : case_.json.at("graphs")) {
      if (g.at("name") != instance || text_at(g, "parent_node") != graph_.name(owner)) continue;
      add_graph(g, graph_.add_scope(Scope{instance, owner, scope, text_at(g, "shape") == "dynamic"}));
      return;
    }
    graph_.add_scope(Scope{instance, owner, scope, false});  // a body that the case leaves out
  }

  static std::vector<std::string> topological(const std::vector<std::string>& names, const Json& g) {
    std::map<std::string, std::set<std::string>> before;
    for (const Json& e : g.at("data_edges")) before[e.at(2).get<std::string>()].insert(e.at(0).get<std::string>());
    std::vector<std::string> out;
    std::set<std::string> done;
    while (out.size() < names.size()) {
      const std::size_t had = out.size();
      for (const std::string& name : names) {
        if (done.count(name) != 0) continue;
        const auto& need = before[name];
        if (!std::all_of(need.begin(), need.end(), [&](const std::string& p) { return done.count(p) != 0; })) continue;
        done.insert(name);
        out.push_back(name);
      }
      MST_CHECK(out.size() > had, "the case's data edges have a cycle");
    }
    return out;
  }

  void notes(NodeId id, const Json& n) {
    Annotations& a = graph_.annotations();
    const auto intern = [&](const std::string& text) { return graph_.intern(text); };
    if (n.contains("engine")) a.engine.set(id, intern(n.at("engine").get<std::string>()));
    if (n.contains("stream_label") && n.at("stream_label").is_string()) a.label.set(id, intern(n.at("stream_label").get<std::string>()));
    if (n.contains("user_stream_label") && n.at("user_stream_label").is_string()) a.user_label.set(id, intern(n.at("user_stream_label").get<std::string>()));
    case_.streams.push_back(n.contains("preassigned_stream") ? n.at("preassigned_stream").get<std::int64_t>() : -1);
    if (n.contains("cluster")) cluster_of_.push_back({id, n.at("cluster").get<std::string>()});
    if (!n.contains("attrs")) return;
    Roles roles;
    bool any_role = false;
    Attrs rest;
    for (const auto& attr : n.at("attrs").items()) {
      const std::string& key = attr.key();
      const Json& value = attr.value();
      const auto role = [&](bool Roles::*member) {
        roles.*member = value.get<bool>();
        any_role = true;
      };
      const auto texts = [&] {
        std::vector<StringId> ids;
        for (const Json& item : value) ids.push_back(intern(item.get<std::string>()));
        return ids;
      };
      const auto request = [](const Json& info) { return AttachedRequest{info.value("stream_num", std::int64_t{1}), info.value("reuse_key", std::string())}; };
      if (key == "NEW_STREAM_ID") a.new_stream.set(id, value.get<std::int64_t>());
      else if (key == "PARALLEL_GROUP") a.parallel_group.set(id, intern(value.get<std::string>()));
      else if (key == "ATTACHED_STREAM_INFO") a.attached.set(id, {request(value)});
      else if (key == "ATTACHED_STREAM_INFO_LIST") {
        std::vector<AttachedRequest> list;
        for (const Json& info : value) list.push_back(request(info));
        a.attached.set(id, std::move(list));
      }
      else if (key == "ACTIVE_LABEL_LIST") a.activates.set(id, texts());
      else if (key == "ACTIVE_STREAM_LIST") a.activates_streams.set(id, value.get<std::vector<std::int64_t>>());
      else if (key == "RTS_LABEL_NODE") role(&Roles::rts_label);
      else if (key == "SUBGRAPH_FIRST_ACTIVE") role(&Roles::first_active);
      else if (key == "SUBGRAPH_END_NODE") role(&Roles::end_node);
      else if (key == "IS_LOOP_ACTIVE") role(&Roles::loop_active);
      else if (key == "SWITCH_TRUE_BRANCH_FLAG") role(&Roles::true_branch);
      else if (key == "CONTINUOUS_STREAM_LABEL") a.continuous.set(id, intern(value.get<std::string>()));
      else if (key == "EVENT_MULTIPLEXING") a.multiplex.set(id, texts());
      else if (key == "BATCH_LABEL") a.batch.set(id, intern(value.get<std::string>()));
      else if (key == "THREAD_SCOPE_ID") a.thread_scope.set(id, value.get<std::int64_t>());
      else if (key != "SUBGRAPHS") rest.set(key, value.dump());
    }
    if (any_role) a.roles.set(id, roles);
    if (!rest.empty()) graph_.set_attrs(id, std::move(rest));
  }

  // n senders on stream 0, each feeding a receiver on a stream of its own.
  Result<void> generate(const std::string& path, const Json& spec) {
    if (text_at(spec, "kind") != "fan_pairs_distinct_streams") return bad(path, "unknown generator " + spec.dump());
    const auto count = spec.at("count").get<std::size_t>();
    graph_.set_name("g");
    const auto node = [&](std::string name, std::vector<InputRef> inputs, std::int64_t stream) {
      const std::string_view outputs[] = {name};
      const NodeId id = graph_.add_node({"Relu", name, inputs, outputs, {}});
      graph_.annotations().engine.set(id, graph_.intern(case_.target.engines[EngineId(0)].name));
      case_.streams.push_back(stream);
      return id;
    };
    std::vector<NodeId> senders;
    for (std::size_t i = 0; i < count; ++i) senders.push_back(node(fmt::format("s{}", i), {}, 0));
    for (std::size_t i = 0; i < count; ++i) node(fmt::format("r{}", i), {graph_.outputs(senders[i])[0]}, static_cast<std::int64_t>(i) + 1);
    return {};
  }

  void clusters() {
    for (const auto& [scope, name] : cluster_order_) {
      Case::Cluster cluster{name, scope, {}};
      for (const auto& [node, of] : cluster_of_) {
        if (of == name && graph_.scope_of(node) == scope) cluster.nodes.push_back(node);
      }
      case_.clusters.push_back(std::move(cluster));
    }
  }

  Case& case_;
  Graph& graph_;
  std::map<std::string, NodeId> nodes_;
  std::vector<NodeId> order_;
  bool fixed_ = false;
  std::vector<std::pair<ScopeId, std::string>> cluster_order_;
  std::vector<std::pair<NodeId, std::string>> cluster_of_;
};

}  // namespace

std::vector<std::string> Case::phases() const {
  return has_option("phases") ? option("phases").get<std::vector<std::string>>() : std::vector<std::string>();
}

Result<Case> load_case(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Error{ErrorCode::io, fmt::format("cannot open {}", path)};
  Case c;
  // nlohmann::json reports what does not fit by exceptions; here they become errors with the file's name.
  try {
    c.json = Json::parse(in);
    c.name = c.json.at("name").get<std::string>();
    c.stage = c.json.at("stage").get<std::string>();
    const std::string preset = c.json.value("preset", std::string("default"));
    if (preset != "default" && preset != "ge2023") return bad(path, "unknown preset " + preset);
    c.preset = preset == "ge2023" ? Preset::ge2023 : Preset::ours;
    c.optional = c.json.value("scope", std::string()) == "optional";
    if (!c.optional) MST_TRY_VOID(Loader(c).load(path));
  } catch (const std::exception& e) {
    return bad(path, e.what());
  }
  return c;
}

StreamAssignment given_streams(const Case& c, std::size_t least) {
  StreamAssignment on;
  on.rules = {"input"};
  on.reasons = {"the case says so"};
  on.placement = IdVec<NodeId, std::optional<Placement>>(c.graph.node_count());
  std::size_t count = least;
  for (const std::int64_t s : c.streams) count = std::max(count, static_cast<std::size_t>(s + 1));
  for (std::size_t s = 0; s < count; ++s) on.new_stream();
  for (const NodeId n : c.graph.nodes()) {
    const std::int64_t s = c.streams[n.index];
    if (s < 0) continue;
    on.placement[n] = Placement{StreamId(static_cast<std::size_t>(s)), RuleId(0)};
    if (const auto& label = c.graph.annotations().label.get(n)) on.streams[StreamId(static_cast<std::size_t>(s))].label = std::string(c.graph.text(*label));
  }
  return on;
}

void show_streams(const Case& c, const StreamAssignment& on, Outcome& outcome) {
  outcome.node_streams.emplace();
  for (const NodeId n : c.graph.nodes()) {
    const auto s = on.stream_of(n);
    (*outcome.node_streams)[std::string(c.graph.name(n))] = s ? static_cast<std::int64_t>(s->index) : -1;
  }
  const auto attached = static_cast<std::int64_t>(on.attached_count());
  outcome.total_stream_num = on.stream_count();
  outcome.stream_num = *outcome.total_stream_num - attached;
  outcome.attached.emplace();
  for (const NodeId n : c.graph.nodes()) {
    const auto& list = on.attached.get(n);
    if (!list || list->empty()) continue;
    for (const StreamId s : *list) (*outcome.attached)[std::string(c.graph.name(n))].push_back(s.index);
  }
}

}  // namespace millstream::cases
