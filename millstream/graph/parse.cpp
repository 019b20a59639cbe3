// SPDX-License-Identifier: Apache-2.0
// Recursive descent over the lexer. Grammar: docs/text-format.md.
#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "millstream/graph/lexer.h"
#include "millstream/graph/parse_data.h"
#include "millstream/graph/text.h"

namespace millstream {
namespace {

constexpr std::size_t kMaxBodyDepth = 64;
constexpr std::size_t kMaxKeptText = 1 << 20;  // longer texts: messages have line and column, not the line itself
constexpr std::string_view kAnnotations[] = {
    "name",     "after",     "cost",   "label",      "user_label", "priority",  "inner_parallel", "parallel_group", "engine",       "new_stream", "stream",
    "attached", "activates", "activates_streams", "role", "continuous", "batch", "multiplex",      "thread_scope",   "used_streams", "scope"};

class GraphParser {
 public:
  GraphParser(std::string_view text, const std::string& file, std::uint32_t first_line)
      : lex_(text, file, first_line),
        source_(std::make_shared<const SourceText>(
            SourceText{file, text.size() <= kMaxKeptText ? std::string(text) : std::string(), first_line})) {}

  Result<Graph> parse() {
    MST_TRY_VOID(lex_.skip_newlines());
    MST_TRY_VOID(lex_.expect("graph"));
    MST_TRY(Section root, section("graph"));
    while (lex_.at("body")) {
      const Token keyword = lex_.peek();
      MST_TRY_VOID(lex_.next());
      MST_TRY(std::string name, lex_.expect_name("the body's name"));
      MST_TRY(Section body, section(name));
      if (bodies_.count(name) != 0) return lex_.error(keyword, fmt::format("body \"{}\" is given twice", name));
      body.keyword = keyword;
      bodies_.emplace(name, std::move(body));
    }
    if (!lex_.at_end() && !lex_.at("schedule")) {
      return lex_.error(lex_.peek(), "expected \"body NAME\", \"schedule\" or the end of the text");
    }
    MST_TRY_VOID(attach(root, 0));
    for (const auto& [name, body] : bodies_) {
      if (!body.used) return lex_.error(body.keyword, fmt::format("body \"{}\" is not used by any node", name));
    }
    return std::move(root.graph);
  }

 private:
  struct BodyRef {
    NodeId node;
    std::string attribute;
    std::string name;
    Token token;
  };
  struct ScopeLine {
    Token token;
    std::string name;
    Token parent_token;
    std::string parent;
    bool dynamic = false;
  };
  struct PendingScope {
    NodeId node;
    std::string name;
    Token token;
  };
  struct PendingEdge {
    Token from_token;
    std::string from;
    NodeId to;
  };
  struct Section {
    Graph graph;
    std::vector<BodyRef> body_refs;
    Token keyword;
    bool used = false;
  };

  // --- one section: header line, then statements until "body", "schedule" or the end.
  Result<Section> section(const std::string& default_name) {
    Section s{Graph(default_name), {}, {}, false};
    s.graph.set_source(source_);
    // Names of the section, by interned id.
    values_.clear();
    nodes_.clear();
    edges_.clear();
    loop_edges_.clear();
    scopes_.clear();
    in_scope_.clear();
    order_.clear();
    order_fixed_ = false;
    has_order_ = false;
    while (lex_.peek().kind != Token::Kind::newline && !lex_.at_end()) {
      const Token token = lex_.peek();
      MST_TRY(std::string word, lex_.expect_name("the graph's name or an option"));
      if (token.kind == Token::Kind::word && lex_.at("=")) {
        MST_TRY_VOID(lex_.next());
        if (word == "opset") {
          MST_TRY(const std::int64_t version, lex_.expect_integer("an operator set version"));
          if (version < 1 || version > 1000) return lex_.error(token, "the operator set version lies outside 1..1000");
          s.graph.set_opset(static_cast<int>(version));
        } else if (word == "name") {
          MST_TRY(std::string name, lex_.expect_name("a name"));
          s.graph.set_name(std::move(name));
        } else if (word == "shapes") {
          const Token value = lex_.peek();
          MST_TRY(const std::string shapes, lex_.expect_name("static or dynamic"));
          if (shapes != "static" && shapes != "dynamic") return lex_.error(value, "shapes are static or dynamic");
          s.graph.set_dynamic(shapes == "dynamic");
        } else {
          return lex_.error(token, fmt::format("unknown option \"{}\"; options are opset, name and shapes", word));
        }
      } else {
        s.graph.set_name(std::move(word));
      }
    }
    MST_TRY_VOID(lex_.skip_newlines());
    const Token first = lex_.peek();
    while (!lex_.at_end() && !lex_.at("body") && !lex_.at("schedule")) {
      MST_TRY_VOID(statement(s));
      MST_TRY_VOID(end_of_line());
    }
    MST_TRY_VOID(lex_.skip_newlines());  // surfaces a lexer error
    MST_TRY_VOID(finish_section(s, first));
    return s;
  }

  Result<void> finish_section(Section& s, const Token& first) {
    for (const PendingEdge& e : edges_) {
      MST_TRY(const NodeId from, node_named(s.graph, e.from, e.from_token));
      s.graph.add_control_edge(from, e.to);
    }
    for (const auto& [from, to] : loop_edges_) {
      MST_TRY(const NodeId a, node_named(s.graph, from.second, from.first));
      MST_TRY(const NodeId b, node_named(s.graph, to.second, to.first));
      s.graph.add_loop_back_edge(a, b);
    }
    MST_TRY_VOID(resolve_scopes(s.graph));
    if (has_order_) {
      std::vector<NodeId> order;
      for (const auto& [token, name] : order_) {
        MST_TRY(const NodeId n, node_named(s.graph, name, token));
        order.push_back(n);
      }
      std::vector<bool> seen(s.graph.node_count(), false);
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (seen[order[i].index]) {
          return lex_.error(order_[i].first, fmt::format("the order lists \"{}\" twice", order_[i].second));
        }
        seen[order[i].index] = true;
      }
      if (order.size() != s.graph.node_count()) {
        return lex_.error(order_token_, fmt::format("the order lists {} of {} nodes", order.size(), s.graph.node_count()));
      }
      s.graph.set_order(std::move(order), order_fixed_);
    }
    // Bodies attach later, so captures are not known yet; outputs that only a body reads must be declared.
    if (s.body_refs.empty()) {
      if (auto r = s.graph.finish(); !r.ok()) return located(std::move(r).error(), first);
    }
    return {};
  }

  // A scope's parent node may stand in a scope that is declared behind it only if that leads to no circle:
  // parents are declared first.
  Result<void> resolve_scopes(Graph& graph) {
    std::vector<std::pair<std::string, ScopeId>> known;
    for (const ScopeLine& line : scopes_) {
      for (const auto& [name, id] : known) {
        if (name == line.name) return lex_.error(line.token, fmt::format("two scopes are named \"{}\"", name));
      }
      MST_TRY(const NodeId parent, node_named(graph, line.parent, line.parent_token));
      Scope scope{line.name, parent, ScopeId(0), line.dynamic};
      for (const PendingScope& p : in_scope_) {
        if (p.node != parent) continue;
        const auto found = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == p.name; });
        if (found == known.end()) {
          return lex_.error(line.parent_token, fmt::format("scope \"{}\" of node \"{}\" must be declared above", p.name, line.parent));
        }
        scope.parent = found->second;
      }
      known.push_back({line.name, graph.add_scope(std::move(scope))});
    }
    for (const PendingScope& p : in_scope_) {
      const auto found = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == p.name; });
      if (found == known.end()) return lex_.error(p.token, fmt::format("there is no scope \"{}\"", p.name));
      graph.set_scope(p.node, found->second);
    }
    return {};
  }

  // Bodies first, then the owner's finish sees what they capture.
  Result<void> attach(Section& s, std::size_t depth) {
    if (s.body_refs.empty()) return {};
    for (const BodyRef& ref : s.body_refs) {
      if (depth >= kMaxBodyDepth) return lex_.error(ref.token, fmt::format("bodies nest deeper than {}", kMaxBodyDepth));
      auto it = bodies_.find(ref.name);
      if (it == bodies_.end()) return lex_.error(ref.token, fmt::format("there is no body \"{}\"", ref.name));
      if (it->second.used) return lex_.error(ref.token, fmt::format("body \"{}\" is used twice; give each use its own body", ref.name));
      it->second.used = true;
      MST_TRY_VOID(attach(it->second, depth + 1));
      s.graph.add_body(ref.node, ref.attribute, std::move(it->second.graph));
    }
    if (auto r = s.graph.finish(); !r.ok()) return located(std::move(r).error(), s.body_refs.front().token);
    return {};
  }

  Error located(Error error, const Token& token) const {
    if (!error.where) error.where = lex_.error(token, "").where;
    return error;
  }

  Result<void> end_of_line() {
    if (lex_.peek().kind != Token::Kind::newline && !lex_.at_end()) {
      return lex_.error(lex_.peek(), fmt::format("expected the end of the line, found \"{}\"", lex_.peek().text));
    }
    return lex_.skip_newlines();
  }

  // --- statements
  Result<void> statement(Section& s) {
    const Token token = lex_.peek();
    if (token.kind == Token::Kind::word) {
      const std::string_view word = token.text;
      // A keyword followed by "=", "," is a value of that name.
      if (word == "input" || word == "outer" || word == "const" || word == "output" || word == "loopback" ||
          word == "order" || word == "scope") {
        Lexer ahead = lex_;
        MST_TRY_VOID(ahead.next());
        if (!ahead.at("=") && !ahead.at(",") && !ahead.at("(")) {
          MST_TRY_VOID(lex_.next());
          if (word == "input" || word == "outer") return declaration(s.graph, word == "input");
          if (word == "const") return constant(s.graph);
          if (word == "output") return output(s.graph);
          if (word == "loopback") return loopback();
          if (word == "scope") return scope();
          return order(token);
        }
      }
    }
    return node(s);
  }

  Result<void> declaration(Graph& graph, bool input) {
    const Token token = lex_.peek();
    MST_TRY(std::string name, lex_.expect_name("the value's name"));
    TensorDesc desc;
    if (lex_.at(":")) {
      MST_TRY_VOID(lex_.next());
      MST_TRY(desc, data_.desc());
    }
    MST_TRY_VOID(fresh_value(graph, name, token));
    define(graph, name, input ? graph.add_input(name, std::move(desc)) : graph.add_outer(name, std::move(desc)));
    return {};
  }

  Result<void> constant(Graph& graph) {
    const Token token = lex_.peek();
    MST_TRY(std::string name, lex_.expect_name("the constant's name"));
    MST_TRY_VOID(lex_.expect(":"));
    MST_TRY(Tensor tensor, data_.tensor());
    MST_TRY_VOID(fresh_value(graph, name, token));
    define(graph, name, graph.add_constant(name, std::move(tensor)));
    return {};
  }

  Result<void> output(Graph& graph) {
    while (true) {
      const Token token = lex_.peek();
      MST_TRY(std::string name, lex_.expect_name("an output's name"));
      MST_TRY(const ValueId v, value_named(graph, name, token));
      graph.add_output(v);
      if (!lex_.at(",")) return {};
      MST_TRY_VOID(lex_.next());
    }
  }

  Result<void> loopback() {
    const Token from = lex_.peek();
    MST_TRY(std::string from_name, lex_.expect_name("a node"));
    MST_TRY_VOID(lex_.expect("->"));
    const Token to = lex_.peek();
    MST_TRY(std::string to_name, lex_.expect_name("a node"));
    loop_edges_.push_back({{from, std::move(from_name)}, {to, std::move(to_name)}});
    return {};
  }

  // scope NAME of NODE [dynamic]
  Result<void> scope() {
    ScopeLine line;
    line.token = lex_.peek();
    MST_TRY(line.name, lex_.expect_name("the scope's name"));
    MST_TRY_VOID(lex_.expect("of"));
    line.parent_token = lex_.peek();
    MST_TRY(line.parent, lex_.expect_name("the node that runs it"));
    if (lex_.at("dynamic")) {
      line.dynamic = true;
      MST_TRY_VOID(lex_.next());
    }
    scopes_.push_back(std::move(line));
    return {};
  }

  Result<void> order(const Token& token) {
    if (has_order_) return lex_.error(token, "the order is given twice");
    has_order_ = true;
    order_token_ = token;
    if (lex_.at("fixed")) {
      order_fixed_ = true;
      MST_TRY_VOID(lex_.next());
    }
    while (lex_.peek().kind != Token::Kind::newline && !lex_.at_end()) {
      const Token name_token = lex_.peek();
      MST_TRY(std::string name, lex_.expect_name("a node"));
      order_.push_back({name_token, std::move(name)});
    }
    return {};
  }

  // y, _ = Type(a, _, b) {k=v, ...} : desc, desc @note(...) ...
  Result<void> node(Section& s) {
    Graph& graph = s.graph;
    const Token first = lex_.peek();
    std::vector<std::pair<Token, std::string>> outputs;
    std::string type;
    MST_TRY(std::string word, name_or_blank("a node: OUTPUT = TYPE(INPUTS)"));
    if (lex_.at("(")) {  // no outputs
      type = std::move(word);
    } else {
      outputs.push_back({first, std::move(word)});
      while (lex_.at(",")) {
        MST_TRY_VOID(lex_.next());
        const Token token = lex_.peek();
        MST_TRY(std::string name, name_or_blank("an output"));
        outputs.push_back({token, std::move(name)});
      }
      MST_TRY_VOID(lex_.expect("="));
      MST_TRY(type, lex_.expect_name("the operator's type"));
    }
    MST_TRY_VOID(lex_.expect("("));
    std::vector<InputRef> inputs;
    while (!lex_.at(")")) {
      if (!inputs.empty()) MST_TRY_VOID(lex_.expect(","));
      const Token token = lex_.peek();
      MST_TRY(std::string name, name_or_blank("an input"));
      if (name.empty()) {
        inputs.push_back(InputRef());
      } else {
        MST_TRY(const ValueId v, value_named(graph, name, token));
        inputs.push_back(v);
      }
    }
    MST_TRY_VOID(lex_.expect(")"));

    Graph::NodeSpec spec;
    std::vector<BodyRef> body_refs;
    if (lex_.at("{")) MST_TRY_VOID(attributes(spec.attrs, body_refs));
    std::vector<TensorDesc> descs;
    const Token colon = lex_.peek();
    if (lex_.at(":")) {
      do {
        MST_TRY_VOID(lex_.next());
        MST_TRY(TensorDesc d, data_.desc());
        descs.push_back(std::move(d));
      } while (lex_.at(","));
      if (descs.size() != outputs.size()) {
        return lex_.error(colon, fmt::format("{} types for {} outputs", descs.size(), outputs.size()));
      }
    }

    std::string node_name = outputs.empty() ? std::string() : outputs[0].second;
    Notes notes;
    while (lex_.at("@")) {
      MST_TRY_VOID(lex_.next());
      MST_TRY_VOID(annotation(notes, node_name));
    }
    if (node_name.empty()) return lex_.error(first, "this node needs an output or @name(\"...\")");
    if (outputs.size() > std::numeric_limits<std::uint16_t>::max()) return lex_.error(first, "too many outputs");

    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].second.empty()) continue;
      MST_TRY_VOID(fresh_value(graph, outputs[i].second, outputs[i].first));
      for (std::size_t j = 0; j < i; ++j) {
        if (outputs[j].second == outputs[i].second) return lex_.error(outputs[i].first, "this node has two outputs of one name");
      }
    }
    std::vector<std::string_view> names;
    for (const auto& [token, name] : outputs) names.push_back(name);
    spec.type = type;
    spec.name = node_name;
    spec.inputs = inputs;
    spec.outputs = names;
    const StringId name_id = graph.intern(node_name);
    if (name_id.index < nodes_.size() && nodes_[name_id.index]) {
      return lex_.error(first, fmt::format("two nodes are named \"{}\"", node_name));
    }
    const NodeId n = graph.add_node(spec);
    if (nodes_.size() <= name_id.index) nodes_.resize(name_id.index + 1);
    nodes_[name_id.index] = n;
    graph.set_place(n, first.line, first.column);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueId v = graph.outputs(n)[i];
      if (!outputs[i].second.empty()) define(graph, outputs[i].second, v);
      if (!descs.empty()) graph.set_desc(v, std::move(descs[i]));
    }
    for (BodyRef& ref : body_refs) {
      ref.node = n;
      s.body_refs.push_back(std::move(ref));
    }
    apply(graph, n, notes);
    return {};
  }

  struct Notes {
    std::optional<std::string> label, user_label, parallel_group, engine, continuous, batch, scope;
    std::optional<std::int64_t> priority, new_stream, stream, thread_scope, used_streams;
    std::optional<bool> inner_parallel;
    std::optional<std::vector<AttachedRequest>> attached;
    std::optional<std::vector<std::string>> activates, multiplex;
    std::optional<std::vector<std::int64_t>> activates_streams;
    std::optional<Roles> roles;
    Token scope_token;
    std::optional<double> cost;
    std::vector<std::pair<Token, std::string>> after;
  };

  // Calls `item` for each element of a list that ends at ")"; an empty list has none.
  template <class Item>
  Result<void> list_of(Item item) {
    for (bool first = true; !lex_.at(")"); first = false) {
      if (!first) MST_TRY_VOID(lex_.expect(","));
      MST_TRY_VOID(item());
    }
    return {};
  }

  Result<void> annotation(Notes& notes, std::string& node_name) {
    const Token token = lex_.peek();
    MST_TRY(const std::string key, lex_.expect_name("an annotation"));
    if (!lex_.at("(")) {
      if (std::find(std::begin(kAnnotations), std::end(kAnnotations), key) == std::end(kAnnotations)) return unknown(token, key);
      return lex_.error(token, fmt::format("annotation @{} has no value", key)).help("annotations are written @NAME(VALUE), as in @label(\"s1\")");
    }
    MST_TRY_VOID(lex_.expect("("));
    if (key == "stream" && lex_.peek().kind == Token::Kind::string) {
      return lex_.error(lex_.peek(), "@stream takes the number of a stream")
          .help("nodes of one label share a stream: @label(\"side\")");
    }
    const std::pair<std::string_view, std::optional<std::string>*> texts[] = {
        {"label", &notes.label},         {"user_label", &notes.user_label}, {"parallel_group", &notes.parallel_group},
        {"engine", &notes.engine},       {"continuous", &notes.continuous}, {"batch", &notes.batch},
        {"scope", &notes.scope}};
    const std::pair<std::string_view, std::optional<std::int64_t>*> integers[] = {
        {"priority", &notes.priority},         {"new_stream", &notes.new_stream},     {"stream", &notes.stream},
        {"thread_scope", &notes.thread_scope}, {"used_streams", &notes.used_streams}};
    const std::pair<std::string_view, std::optional<std::vector<std::string>>*> lists[] = {
        {"activates", &notes.activates}, {"multiplex", &notes.multiplex}};
    bool known = false;
    for (const auto& [name, slot] : texts) {
      if (key != name) continue;
      known = true;
      if (*slot) return twice(token, key);
      if (key == "scope") notes.scope_token = token;
      MST_TRY(*slot, lex_.expect_name("a text"));
    }
    for (const auto& [name, slot] : integers) {
      if (key != name) continue;
      known = true;
      if (*slot) return twice(token, key);
      MST_TRY(*slot, lex_.expect_integer("a whole number"));
    }
    for (const auto& [name, slot] : lists) {
      if (key != name) continue;
      known = true;
      if (*slot) return twice(token, key);
      slot->emplace();
      MST_TRY_VOID(list_of([&, to = slot]() -> Result<void> {
        MST_TRY(std::string text, lex_.expect_name("a text"));
        (*to)->push_back(std::move(text));
        return {};
      }));
    }
    if (known) return closed();
    if (key == "after") {
      while (true) {
        const Token name_token = lex_.peek();
        MST_TRY(std::string name, lex_.expect_name("a node"));
        notes.after.push_back({name_token, std::move(name)});
        if (!lex_.at(",")) break;
        MST_TRY_VOID(lex_.next());
      }
    } else if (key == "name") {
      MST_TRY(node_name, lex_.expect_name("a text"));
    } else if (key == "cost") {
      MST_TRY(const double cost, lex_.expect_number("the cost"));
      if (!(cost >= 0) || cost > 1e15) return lex_.error(token, "a cost is a number of microseconds from 0 to 1e15");
      if (notes.cost) return twice(token, key);
      notes.cost = cost;
    } else if (key == "inner_parallel") {
      MST_TRY(const std::string value, lex_.expect_name("true or false"));
      if (value != "true" && value != "false") return lex_.error(token, "inner_parallel is true or false");
      if (notes.inner_parallel) return twice(token, key);
      notes.inner_parallel = value == "true";
    } else if (key == "attached") {
      AttachedRequest request;
      MST_TRY(request.count, lex_.expect_integer("the number of streams"));
      if (lex_.at(",")) {
        MST_TRY_VOID(lex_.next());
        MST_TRY(request.reuse_key, lex_.expect_name("the reuse key"));
      }
      if (!notes.attached) notes.attached.emplace();
      notes.attached->push_back(std::move(request));
    } else if (key == "activates_streams") {
      notes.activates_streams.emplace();
      MST_TRY_VOID(list_of([&]() -> Result<void> {
        MST_TRY(const std::int64_t id, lex_.expect_integer("a stream"));
        notes.activates_streams->push_back(id);
        return {};
      }));
    } else if (key == "role") {
      notes.roles.emplace();
      MST_TRY_VOID(list_of([&]() -> Result<void> { return role(*notes.roles); }));
    } else {
      return unknown(token, key);
    }
    return closed();
  }

  Error unknown(const Token& token, std::string_view key) const {
    std::string all;
    for (const std::string_view& name : kAnnotations) {
      all += fmt::format("{}{}", all.empty() ? "there are " : &name == std::end(kAnnotations) - 1 ? " and " : ", ", name);
    }
    return lex_.error(token, fmt::format("unknown annotation @{}", key)).help(std::move(all));
  }

  Error twice(const Token& token, std::string_view key) const {
    return lex_.error(token, fmt::format("annotation @{} is given twice", key));
  }

  Result<void> closed() {
    MST_TRY_VOID(lex_.expect(")"));
    return {};
  }

  Result<void> role(Roles& roles) {
    const Token token = lex_.peek();
    MST_TRY(const std::string name, lex_.expect_name("a role"));
    if (name == "rts_label") roles.rts_label = true;
    else if (name == "first_active") roles.first_active = true;
    else if (name == "end_node") roles.end_node = true;
    else if (name == "loop_active") roles.loop_active = true;
    else if (name == "true_branch") roles.true_branch = true;
    else return lex_.error(token, "roles are rts_label, first_active, end_node, loop_active and true_branch");
    return {};
  }

  void apply(Graph& graph, NodeId n, Notes& notes) {
    Annotations& table = graph.annotations();
    if (notes.label) table.label.set(n, graph.intern(*notes.label));
    if (notes.user_label) table.user_label.set(n, graph.intern(*notes.user_label));
    if (notes.parallel_group) table.parallel_group.set(n, graph.intern(*notes.parallel_group));
    if (notes.engine) table.engine.set(n, graph.intern(*notes.engine));
    if (notes.priority) table.priority.set(n, *notes.priority);
    if (notes.cost) table.cost.set(n, *notes.cost);
    if (notes.inner_parallel) table.inner_parallel.set(n, *notes.inner_parallel);
    if (notes.new_stream) table.new_stream.set(n, *notes.new_stream);
    if (notes.stream) table.preset_stream.set(n, *notes.stream);
    if (notes.attached) table.attached.set(n, std::move(*notes.attached));
    const auto interned = [&](const std::vector<std::string>& list) {
      std::vector<StringId> out;
      for (const std::string& text : list) out.push_back(graph.intern(text));
      return out;
    };
    if (notes.activates) table.activates.set(n, interned(*notes.activates));
    if (notes.multiplex) table.multiplex.set(n, interned(*notes.multiplex));
    if (notes.activates_streams) table.activates_streams.set(n, std::move(*notes.activates_streams));
    if (notes.roles) table.roles.set(n, *notes.roles);
    if (notes.continuous) table.continuous.set(n, graph.intern(*notes.continuous));
    if (notes.batch) table.batch.set(n, graph.intern(*notes.batch));
    if (notes.thread_scope) table.thread_scope.set(n, *notes.thread_scope);
    if (notes.used_streams) table.used_streams.set(n, *notes.used_streams);
    if (notes.scope) in_scope_.push_back({n, std::move(*notes.scope), notes.scope_token});
    for (auto& [token, name] : notes.after) edges_.push_back({token, std::move(name), n});
  }

  // --- attributes
  Result<void> attributes(Attrs& attrs, std::vector<BodyRef>& bodies) {
    MST_TRY_VOID(lex_.expect("{"));
    MST_TRY_VOID(lex_.skip_newlines());
    while (!lex_.at("}")) {
      const Token token = lex_.peek();
      MST_TRY(std::string key, lex_.expect_name("an attribute"));
      MST_TRY_VOID(lex_.expect("="));
      if (lex_.at("body")) {
        MST_TRY_VOID(lex_.next());
        MST_TRY_VOID(lex_.expect("("));
        const Token name_token = lex_.peek();
        MST_TRY(std::string name, lex_.expect_name("a body's name"));
        MST_TRY_VOID(lex_.expect(")"));
        bodies.push_back({NodeId(), std::move(key), std::move(name), name_token});
      } else {
        if (attrs.has(key)) return lex_.error(token, fmt::format("attribute \"{}\" is given twice", key));
        MST_TRY(Attr value, data_.attribute());
        attrs.set(std::move(key), std::move(value));
      }
      MST_TRY_VOID(lex_.skip_newlines());
      if (lex_.at("}")) break;
      MST_TRY_VOID(lex_.expect(","));
      MST_TRY_VOID(lex_.skip_newlines());
    }
    MST_TRY_VOID(lex_.expect("}"));
    return {};
  }

  // --- names
  Result<std::string> name_or_blank(std::string_view what) {
    if (lex_.at("_")) {
      MST_TRY_VOID(lex_.next());
      return std::string();
    }
    MST_TRY(std::string name, lex_.expect_name(what));
    if (name.empty()) return lex_.error(lex_.peek(), "an empty name; write _ for none");
    return name;
  }

  void define(Graph& graph, std::string_view name, ValueId v) {
    const StringId id = graph.intern(name);
    if (values_.size() <= id.index) values_.resize(std::max<std::size_t>(id.index + 1, values_.size() * 2));
    values_[id.index] = v;
  }

  Result<void> fresh_value(Graph& graph, const std::string& name, const Token& token) {
    if (name.empty()) return lex_.error(token, "an empty name");
    const StringId id = graph.intern(name);
    if (id.index < values_.size() && values_[id.index]) return lex_.error(token, fmt::format("two values are named \"{}\"", name));
    return {};
  }

  Result<ValueId> value_named(const Graph& graph, const std::string& name, const Token& token) {
    const auto id = graph.strings().find(name);
    if (!id || id->index >= values_.size() || !values_[id->index]) {
      return lex_.error(token, fmt::format("there is no value \"{}\" above this line", name))
          .help("values are declared before they are read: input, const, outer, or a node's output");
    }
    return *values_[id->index];
  }

  Result<NodeId> node_named(const Graph& graph, const std::string& name, const Token& token) {
    const auto id = graph.strings().find(name);
    if (!id || id->index >= nodes_.size() || !nodes_[id->index]) {
      return lex_.error(token, fmt::format("there is no node \"{}\" in this graph", name));
    }
    return *nodes_[id->index];
  }

  Lexer lex_;
  DataParser data_{lex_};
  std::map<std::string, Section> bodies_;
  // Of the section being read.
  std::vector<std::optional<ValueId>> values_;
  std::vector<std::optional<NodeId>> nodes_;
  std::shared_ptr<const SourceText> source_;
  std::vector<PendingEdge> edges_;
  std::vector<ScopeLine> scopes_;
  std::vector<PendingScope> in_scope_;
  std::vector<std::pair<std::pair<Token, std::string>, std::pair<Token, std::string>>> loop_edges_;
  std::vector<std::pair<Token, std::string>> order_;
  Token order_token_;
  bool has_order_ = false;
  bool order_fixed_ = false;
};

}  // namespace

Result<TextSections> split_sections(std::string_view text, const std::string& file) {
  TextSections s;
  std::size_t begin = 0;
  std::uint32_t line = 1;
  bool started = false;
  std::size_t graph_begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    std::string_view row = text.substr(begin, end - begin);
    row = row.substr(0, row.find('#'));
    const bool indented = !row.empty() && (row.front() == ' ' || row.front() == '\t');
    while (!row.empty() && (row.front() == ' ' || row.front() == '\t')) row.remove_prefix(1);
    while (!row.empty() && (row.back() == ' ' || row.back() == '\t' || row.back() == '\r')) row.remove_suffix(1);
    const std::string_view word = row.substr(0, row.find(' '));
    const std::uint32_t this_line = line;
    ++line;
    const std::size_t next = std::min(end + 1, text.size());
    if (!row.empty() && !indented && row == "schedule" && !s.has_schedule) {
      if (s.has_graph) s.graph = text.substr(graph_begin, begin - graph_begin);
      s.has_schedule = true;
      s.schedule = text.substr(next);
      s.schedule_line = line;
      return s;
    }
    if (!row.empty() && !started) {
      if (word != "graph" || indented) {
        return Error{ErrorCode::syntax, "a millstream text starts with \"graph\" or \"schedule\""}.at(
            Where{file, this_line, 1, std::string(row.substr(0, 120))});
      }
      started = true;
      s.has_graph = true;
      s.graph_line = this_line;
      graph_begin = begin;
    }
    begin = end + 1;
  }
  if (!started) return Error{ErrorCode::syntax, "the text is empty; it starts with \"graph\" or \"schedule\""}.at(Where{file, 1, 1, ""});
  s.graph = text.substr(graph_begin);
  return s;
}

Result<Graph> parse_graph(std::string_view text, const std::string& file, std::uint32_t first_line) {
  return GraphParser(text, file, first_line).parse();
}

}  // namespace millstream
