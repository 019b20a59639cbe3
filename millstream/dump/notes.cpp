// SPDX-License-Identifier: Apache-2.0
#include "millstream/dump/notes.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace millstream::dump {
namespace {

using Taken = bool (*)(Graph&, NodeId, const Attr&);
using Given = std::optional<Attr> (*)(const Graph&, NodeId);

template <auto table>
bool take_text(Graph& graph, NodeId n, const Attr& attr) {
  const auto* text = std::get_if<std::string>(&attr);
  if (text == nullptr || text->empty()) return text != nullptr;  // an empty label is none
  (graph.annotations().*table).set(n, graph.intern(*text));
  return true;
}

template <auto table>
std::optional<Attr> give_text(const Graph& graph, NodeId n) {
  const auto& id = (graph.annotations().*table).get(n);
  return id ? std::optional<Attr>(std::string(graph.text(*id))) : std::nullopt;
}

// Dumps also hold numbers as text.
std::optional<std::int64_t> whole(const Attr& attr) {
  if (const auto* i = std::get_if<std::int64_t>(&attr)) return *i;
  const auto* text = std::get_if<std::string>(&attr);
  if (text == nullptr) return std::nullopt;
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  return code == std::errc() && stop == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

template <auto table>
bool take_int(Graph& graph, NodeId n, const Attr& attr) {
  const auto value = whole(attr);
  if (value) (graph.annotations().*table).set(n, *value);
  return value.has_value();
}

template <auto table>
std::optional<Attr> give_int(const Graph& graph, NodeId n) {
  const auto& value = (graph.annotations().*table).get(n);
  return value ? std::optional<Attr>(static_cast<std::int64_t>(*value)) : std::nullopt;
}

template <auto table>
bool take_texts(Graph& graph, NodeId n, const Attr& attr) {
  const auto* texts = std::get_if<std::vector<std::string>>(&attr);
  if (texts == nullptr) return false;
  std::vector<StringId> ids;
  for (const std::string& text : *texts) ids.push_back(graph.intern(text));
  (graph.annotations().*table).set(n, std::move(ids));
  return true;
}

template <auto table>
std::optional<Attr> give_texts(const Graph& graph, NodeId n) {
  const auto& list = (graph.annotations().*table).get(n);
  if (!list) return std::nullopt;
  std::vector<std::string> texts;
  for (const StringId id : *list) texts.emplace_back(graph.text(id));
  return Attr(std::move(texts));
}

bool take_bool(Graph& graph, NodeId n, const Attr& attr) {
  const auto value = whole(attr);
  if (value) graph.annotations().inner_parallel.set(n, *value != 0);
  return value.has_value();
}

// Microseconds: a float where that is exact, else text.
bool take_cost(Graph& graph, NodeId n, const Attr& attr) {
  double value = 0;
  if (const auto* f = std::get_if<float>(&attr)) {
    value = *f;
  } else if (const auto* text = std::get_if<std::string>(&attr)) {
    const auto [stop, code] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (code != std::errc() || stop != text->data() + text->size()) return false;
  } else {
    return false;
  }
  if (!std::isfinite(value) || value < 0) return false;
  graph.annotations().cost.set(n, value);
  return true;
}

std::optional<Attr> give_cost(const Graph& graph, NodeId n) {
  const auto& cost = graph.annotations().cost.get(n);
  if (!cost) return std::nullopt;
  const auto single = static_cast<float>(*cost);
  if (static_cast<double>(single) == *cost) return Attr(single);
  return Attr(fmt::format("{}", *cost));
}

bool take_stream_list(Graph& graph, NodeId n, const Attr& attr) {
  const auto* list = std::get_if<std::vector<std::int64_t>>(&attr);
  if (list != nullptr) graph.annotations().activates_streams.set(n, *list);
  return list != nullptr;
}

std::optional<Attr> give_stream_list(const Graph& graph, NodeId n) {
  const auto& list = graph.annotations().activates_streams.get(n);
  return list ? std::optional<Attr>(*list) : std::nullopt;
}

std::vector<AttachedRequest> attached_of(const Graph& graph, NodeId n) {
  return graph.annotations().attached.get(n).value_or(std::vector<AttachedRequest>());
}

bool take_attached_count(Graph& graph, NodeId n, const Attr& attr) {
  const auto* counts = std::get_if<std::vector<std::int64_t>>(&attr);
  if (counts == nullptr || counts->size() > 1000) return false;
  std::vector<AttachedRequest> list = attached_of(graph, n);
  list.resize(std::max(list.size(), counts->size()));
  for (std::size_t i = 0; i < counts->size(); ++i) list[i].count = (*counts)[i];
  graph.annotations().attached.set(n, std::move(list));
  return true;
}

bool take_attached_keys(Graph& graph, NodeId n, const Attr& attr) {
  const auto* keys = std::get_if<std::vector<std::string>>(&attr);
  if (keys == nullptr || keys->size() > 1000) return false;
  std::vector<AttachedRequest> list = attached_of(graph, n);
  list.resize(std::max(list.size(), keys->size()));
  for (std::size_t i = 0; i < keys->size(); ++i) list[i].reuse_key = (*keys)[i];
  graph.annotations().attached.set(n, std::move(list));
  return true;
}

std::optional<Attr> give_attached_count(const Graph& graph, NodeId n) {
  if (!graph.annotations().attached.get(n)) return std::nullopt;
  std::vector<std::int64_t> counts;
  for (const AttachedRequest& r : attached_of(graph, n)) counts.push_back(r.count);
  return Attr(std::move(counts));
}

std::optional<Attr> give_attached_keys(const Graph& graph, NodeId n) {
  if (!graph.annotations().attached.get(n)) return std::nullopt;
  std::vector<std::string> keys;
  for (const AttachedRequest& r : attached_of(graph, n)) keys.push_back(r.reuse_key);
  return Attr(std::move(keys));
}

template <bool Roles::*role>
bool take_role(Graph& graph, NodeId n, const Attr& attr) {
  const auto value = whole(attr);
  if (!value) return false;
  if (*value == 0) return true;
  Roles roles = graph.annotations().roles.get(n).value_or(Roles{});
  roles.*role = true;
  graph.annotations().roles.set(n, roles);
  return true;
}

template <bool Roles::*role>
std::optional<Attr> give_role(const Graph& graph, NodeId n) {
  const auto& roles = graph.annotations().roles.get(n);
  return roles && (*roles).*role ? std::optional<Attr>(std::int64_t{1}) : std::nullopt;
}

struct NoteRow {
  std::string_view name;  ///< what we write
  std::string_view also;  ///< another spelling that we read
  Taken take;
  Given give;
};

using A = Annotations;
constexpr NoteRow kNotes[] = {
    {"_stream_label", "stream_label", take_text<&A::label>, give_text<&A::label>},
    {"_user_stream_label", "", take_text<&A::user_label>, give_text<&A::user_label>},
    {"_user_stream_priority", "", take_int<&A::priority>, give_int<&A::priority>},
    {"_enable_inner_parallel", "", take_bool, give_int<&A::inner_parallel>},
    {"_parallel_group", "PARALLEL_GROUP", take_text<&A::parallel_group>, give_text<&A::parallel_group>},
    {"_engine_name", "engine_name", take_text<&A::engine>, give_text<&A::engine>},
    {"_cost_us", "", take_cost, give_cost},
    {"_new_stream_id", "new_stream_id", take_int<&A::new_stream>, give_int<&A::new_stream>},
    {"_attached_stream_num", "", take_attached_count, give_attached_count},
    {"_attached_stream_key", "", take_attached_keys, give_attached_keys},
    {"active_label_list", "_active_label_list", take_texts<&A::activates>, give_texts<&A::activates>},
    {"active_stream_list", "_active_stream_list", take_stream_list, give_stream_list},
    {"_rts_label_node", "rts_label_node", take_role<&Roles::rts_label>, give_role<&Roles::rts_label>},
    {"_subgraph_first_active", "subgraph_first_active", take_role<&Roles::first_active>, give_role<&Roles::first_active>},
    {"_subgraph_end_node", "subgraph_end_node", take_role<&Roles::end_node>, give_role<&Roles::end_node>},
    {"is_loop_active", "_is_loop_active", take_role<&Roles::loop_active>, give_role<&Roles::loop_active>},
    {"switch_true_branch_flag", "_switch_true_branch_flag", take_role<&Roles::true_branch>, give_role<&Roles::true_branch>},
    {"_continuous_stream_label", "continuous_stream_label", take_text<&A::continuous>, give_text<&A::continuous>},
    {"_batch_label", "batch_label", take_text<&A::batch>, give_text<&A::batch>},
    {"_event_multiplexing", "event_multiplexing", take_texts<&A::multiplex>, give_texts<&A::multiplex>},
    {"_thread_scope_id", "thread_scope_id", take_int<&A::thread_scope>, give_int<&A::thread_scope>},
    {"used_stream_num", "_used_stream_num", take_int<&A::used_streams>, give_int<&A::used_streams>},
};

const NoteRow* find_note(std::string_view name) {
  for (const NoteRow& row : kNotes) {
    if (row.name == name || (row.also == name && !row.also.empty())) return &row;
  }
  return nullptr;
}

}  // namespace

bool is_note(std::string_view name) { return find_note(name) != nullptr; }

void take_notes(Graph& graph, NodeId n, std::vector<std::pair<std::string, Attr>>& attrs) {
  std::erase_if(attrs, [&](const auto& attr) {
    const NoteRow* row = find_note(attr.first);
    return row != nullptr && row->take(graph, n, attr.second);
  });
}

std::vector<std::pair<std::string, Attr>> notes_of(const Graph& graph, NodeId n) {
  std::vector<std::pair<std::string, Attr>> out;
  for (const NoteRow& row : kNotes) {
    if (auto attr = row.give(graph, n)) out.push_back({std::string(row.name), *std::move(attr)});
  }
  return out;
}

}  // namespace millstream::dump
