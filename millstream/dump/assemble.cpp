// SPDX-License-Identifier: Apache-2.0
// Rows are taken and their links followed. What becomes of them: build.cpp.
#include "millstream/dump/assemble.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace millstream::dump {
namespace {

constexpr std::size_t kDeepestOwner = 64;
// Outputs that one text may claim beside what it can show: each costs memory.
constexpr std::size_t kFreeOutputs = 4096;
constexpr std::size_t kBytesAnOutput = 16;
// The same of subgraphs, each of which is a graph, and of texts in lists.
constexpr std::size_t kFreeSubgraphs = 4096;
constexpr std::size_t kBytesASubgraph = 512;
constexpr std::size_t kFreeTexts = 500'000;
constexpr std::size_t kBytesAText = 24;

// Splits "source:index" at its last colon. A text without one is output 0 of that node.
std::pair<std::string_view, std::optional<std::int32_t>> split_link(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, 0};
  std::int32_t index = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, index);
  if (code != std::errc() || stop != end || index < -1 || index >= 65535) return {text.substr(0, colon), std::nullopt};
  return {text.substr(0, colon), index};
}

}  // namespace

std::uint32_t Assembler::open_section(std::size_t place) {
  if (sections_.size() > kFreeSubgraphs + scanner_.text().size() / kBytesASubgraph) {
    scanner_.fail(place, fmt::format("{} subgraphs, more than the text can hold", sections_.size()));
  }
  sections_.push_back({});
  sections_.back().place = place;
  return static_cast<std::uint32_t>(sections_.size() - 1);
}

void Assembler::count_text() {
  if (++texts_ <= kFreeTexts + scanner_.text().size() / kBytesAText) return;
  scanner_.fail(scanner_.offset(), fmt::format("{} texts in lists, more than the text can hold", texts_));
}

void Assembler::add_output(std::uint32_t section, std::string_view node, std::int64_t index) {
  sections_[section].outputs.push_back({strings_.intern(node), index});
}

std::uint32_t Assembler::desc_id(const DescRow& row) {
  std::string key(1, static_cast<char>(row.dtype));
  key += row.has_shape ? 's' : '-';
  key.append(reinterpret_cast<const char*>(row.dims.data()), row.dims.size() * sizeof(std::int64_t));
  const auto [it, fresh] = desc_index_.try_emplace(std::move(key), static_cast<std::uint32_t>(descs_.size()));
  if (fresh) descs_.push_back(to_desc(row));
  return it->second;
}

Error Assembler::error_at(std::size_t place, ErrorCode code, std::string message) const {
  return Error{code, std::move(message)}.at(scanner_.where(place));
}

void Assembler::add(std::uint32_t section, NodeRow& in) {
  if (scanner_.failed()) return;
  if (in.name.empty()) return scanner_.fail(in.place, "a node without a name");
  if (in.type.empty()) return scanner_.fail(in.place, fmt::format("node \"{}\" has no type", in.name));
  Row row;
  row.name = strings_.intern(in.name);
  row.type = strings_.intern(in.type);
  row.section = section;
  row.place = in.place;
  if (row.place >= counted_) {
    const std::string_view text = scanner_.text();
    while (const void* at = std::memchr(text.data() + counted_, '\n', row.place - counted_)) {
      counted_ = static_cast<std::size_t>(static_cast<const char*>(at) - text.data()) + 1;
      line_begin_ = counted_;
      ++line_;
    }
    counted_ = row.place;
    row.line = line_;
    row.column = static_cast<std::uint32_t>(row.place - line_begin_) + 1;
  } else {
    // A node behind those of the graph that it holds.
    const std::string_view inner = scanner_.text().substr(row.place, counted_ - row.place);
    row.line = line_ - static_cast<std::uint32_t>(std::count(inner.begin(), inner.end(), '\n'));
    const std::size_t begin = row.line == line_ ? line_begin_ : scanner_.text().rfind('\n', row.place) + 1;
    row.column = static_cast<std::uint32_t>(row.place - begin) + 1;
  }
  row.first_link = static_cast<std::uint32_t>(links_.size());
  if (in.id) row.id = *in.id;
  if (in.stream) row.stream = *in.stream;
  if (row.stream >= kMostStreams) {
    return scanner_.fail(in.place, fmt::format("node \"{}\" is on stream {}; streams are numbered 0..{}", in.name, row.stream, kMostStreams - 1));
  }
  row.kind = is_send(in.type) || is_recv(in.type) ? Kind::sync : Kind::node;
  for (const auto& [key, value] : in.attrs) {
    if (key == kValueAttr) row.kind = Kind::value;
  }
  for (const std::string& text : in.inputs) {
    if (text.empty()) {
      links_.push_back({StringId(0), kAbsent});
      continue;
    }
    const auto [source, index] = split_link(text);
    if (!index || source.empty()) return scanner_.fail(in.place, fmt::format("node \"{}\" reads \"{}\", which is not SOURCE:OUTPUT", in.name, text));
    links_.push_back({strings_.intern(source), *index});
  }
  row.first_desc = static_cast<std::uint32_t>(desc_of_.size());
  row.descs = static_cast<std::uint32_t>(in.output_descs.size());
  row.outputs = row.descs;
  for (const DescRow& desc : in.output_descs) desc_of_.push_back(desc_id(desc));
  for (const std::int64_t i : in.outputs) row.outputs = std::max(row.outputs, static_cast<std::uint32_t>(i + 1));
  if (!in.attrs.empty() || !in.subgraphs.empty() || !in.send.empty() || !in.recv.empty()) {
    row.extra = static_cast<std::uint32_t>(extras_.size());
    extras_.push_back({std::move(in.attrs), std::move(in.subgraphs), std::move(in.send), std::move(in.recv)});
  }
  sections_[section].rows.push_back(static_cast<std::uint32_t>(rows_.size()));
  rows_.push_back(row);
}

const Attr* Assembler::attr(const Row& row, std::string_view name) const {
  if (row.extra == kNone) return nullptr;
  for (const auto& [key, value] : extras_[row.extra].attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Assembler::take_attr(Row& row, std::string_view name) {
  if (row.extra != kNone) std::erase_if(extras_[row.extra].attrs, [&](const auto& item) { return item.first == name; });
}

std::vector<std::int64_t> Assembler::ints(const Row& row, std::string_view name) const {
  const Attr* found = attr(row, name);
  const auto* list = found == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(found);
  return list == nullptr ? std::vector<std::int64_t>() : *list;
}

// A subgraph belongs to the node that names it. Where no node does (onnx without texts), to the one whose name is the
// longest beginning of its own.
bool Assembler::find_owners() {
  if (sections_.size() < 2) return true;
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t s = 1; s < sections_.size(); ++s) {
    if (!by_name.emplace(sections_[s].name, s).second) {
      scanner_.fail(sections_[s].place, fmt::format("there are two subgraphs \"{}\"", sections_[s].name));
      return false;
    }
  }
  for (std::uint32_t r = 0; r < rows_.size(); ++r) {
    if (rows_[r].extra == kNone) continue;
    std::vector<std::string>& names = extras_[rows_[r].extra].subgraphs;
    if (const Attr* listed = attr(rows_[r], kSubgraphs)) {
      if (const auto* texts = std::get_if<std::vector<std::string>>(listed)) names = *texts;
    }
    const std::vector<std::int64_t> scopes = ints(rows_[r], kScopes);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto found = by_name.find(names[i]);
      if (found == by_name.end()) continue;  // a dump of one graph leaves its subgraphs out
      Section& section = sections_[found->second];
      if (section.owner != kNone) {
        scanner_.fail(rows_[r].place, fmt::format("subgraph \"{}\" belongs to node \"{}\" and to node \"{}\"", names[i], name(rows_[section.owner]), name(rows_[r])));
        return false;
      }
      section.owner = r;
      section.scope = i < scopes.size();
      section.dynamic = i < scopes.size() && scopes[i] == 2;
    }
    if (const Attr* bodies = attr(rows_[r], kBodies)) {
      const auto* texts = std::get_if<std::vector<std::string>>(bodies);
      for (std::size_t i = 0; texts != nullptr && 2 * i + 1 < texts->size() && i < names.size(); ++i) {
        const auto found = by_name.find(names[i]);
        if (found == by_name.end() || sections_[found->second].owner != r) continue;
        sections_[found->second].attribute = (*texts)[2 * i];
        sections_[found->second].body_name = (*texts)[2 * i + 1];
      }
    }
    for (const std::string_view ours : {kSubgraphs, kBodies}) take_attr(rows_[r], ours);
  }
  // A subgraph that no row names belongs to the node whose name is the longest beginning of its own; names of nodes in a
  // subgraph may stand behind that one's name. Only the last places where a name may end are tried, so that names made of them
  // cost no more than others.
  constexpr std::size_t kMostPlaces = 64;
  const bool unnamed = std::any_of(sections_.begin() + 1, sections_.end(), [](const Section& section) { return section.owner == kNone; });
  std::unordered_map<std::uint32_t, std::uint32_t> anywhere;    // first row by StringId
  std::unordered_map<std::uint64_t, std::uint32_t> in_section;  // by section and StringId
  for (std::uint32_t r = 0; unnamed && r < rows_.size(); ++r) {
    anywhere.emplace(rows_[r].name.index, r);
    in_section.emplace(std::uint64_t{rows_[r].section} << 32 | rows_[r].name.index, r);
  }
  const auto owner_by_name = [&](std::uint32_t s) {
    const std::string_view whole = sections_[s].name;
    std::vector<std::size_t> ends;  // from the longest on
    for (std::size_t i = whole.size(); i-- > 1 && ends.size() < kMostPlaces;) {
      if (whole[i] == '/' || whole[i] == '_' || whole[i] == '.') ends.push_back(i);
    }
    for (const std::size_t end : ends) {
      if (const auto id = strings_.find(whole.substr(0, end))) {
        const auto found = anywhere.find(id->index);
        if (found != anywhere.end() && rows_[found->second].section != s) return found->second;
      }
      for (const std::size_t begin : ends) {
        if (begin + 1 >= end || whole[begin] != '/') continue;
        const auto outer = by_name.find(whole.substr(0, begin));
        const auto id = outer == by_name.end() ? std::nullopt : strings_.find(whole.substr(begin + 1, end - begin - 1));
        const auto found = id ? in_section.find(std::uint64_t{outer->second} << 32 | id->index) : in_section.end();
        if (found != in_section.end()) return found->second;
      }
    }
    return kNone;
  };
  for (std::uint32_t s = 1; s < sections_.size(); ++s) {
    Section& section = sections_[s];
    if (section.owner == kNone) section.owner = owner_by_name(s);
    if (section.owner != kNone) {
      section.scope = section.scope || attr(rows_[section.owner], kScopes) != nullptr;
      continue;
    }
    scanner_.fail(section.place, fmt::format("no node owns the subgraph \"{}\"", section.name),
                  "its owner names it in the ge_proto dump, and in a ge_onnx dump of detail 1");
    return false;
  }
  for (std::uint32_t s = 1; s < sections_.size(); ++s) owned_.push_back({sections_[s].owner, s});
  std::sort(owned_.begin(), owned_.end());
  for (std::uint32_t s = 1; s < sections_.size(); ++s) sections_[rows_[sections_[s].owner].section].inside.push_back(s);
  return true;
}

std::span<const std::pair<std::uint32_t, std::uint32_t>> Assembler::owned_by(std::uint32_t r) const {
  if (owned_.empty()) return {};
  const auto begin = std::lower_bound(owned_.begin(), owned_.end(), std::make_pair(r, std::uint32_t{0}));
  const auto end = std::lower_bound(begin, owned_.end(), std::make_pair(r + 1, std::uint32_t{0}));
  return {begin, end};
}

std::span<const Assembler::Link> Assembler::links(std::uint32_t r) const {
  const std::size_t end = r + 1 < rows_.size() ? rows_[r + 1].first_link : links_.size();
  return {links_.data() + rows_[r].first_link, end - rows_[r].first_link};
}

// Marks what hangs together with the root, and which subgraphs are bodies: those that no stream has been given to yet.
bool Assembler::reach(std::uint32_t s, std::size_t depth) {
  if (depth > kDeepestOwner || sections_[s].reached) {
    scanner_.fail(sections_[s].place, fmt::format("subgraph \"{}\" lies more than {} deep", sections_[s].name, kDeepestOwner));
    return false;
  }
  sections_[s].reached = true;
  for (const std::uint32_t below : sections_[s].inside) {
    Section& section = sections_[below];
    const auto plain = [&](std::uint32_t r) { return rows_[r].stream < 0 && rows_[r].kind != Kind::sync; };
    section.body = sections_[s].body || !section.attribute.empty() || (!section.scope && std::all_of(section.rows.begin(), section.rows.end(), plain));
    if (!reach(below, depth + 1)) return false;
  }
  return true;
}

bool Assembler::index_names() {
  root_names_.assign(strings_.size(), kNone);
  for (std::uint32_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    std::uint32_t& slot = row.section == 0 ? root_names_[row.name.index] : sections_[row.section].by_name.emplace(row.name.index, kNone).first->second;
    if (slot != kNone) {
      scanner_.fail(row.place, fmt::format("there are two nodes \"{}\" in one graph; the other is in line {}", name(row), scanner_.where(rows_[slot].place).line));
      return false;
    }
    slot = r;
  }
  return true;
}

// In the section, else in the graphs around it, as far as they stand in one list of nodes.
std::uint32_t Assembler::find(std::uint32_t s, StringId id) const {
  for (;;) {
    if (s == 0) return root_names_[id.index];
    const auto found = sections_[s].by_name.find(id.index);
    if (found != sections_[s].by_name.end()) return found->second;
    if (sections_[s].body) return kNone;
    s = rows_[sections_[s].owner].section;
  }
}

// SWITCH_StreamActive_i, when the switch is there and itself starts the stream that the node stands on.
void Assembler::find_relays() {
  constexpr std::string_view kMiddle = "_StreamActive_";
  for (std::uint32_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    if (row.kind != Kind::node || type(row) != "StreamActive") continue;
    const std::size_t at = name(row).rfind(kMiddle);
    if (at == std::string_view::npos) continue;
    const auto id = strings_.find(name(row).substr(0, at));
    const std::uint32_t owner = id ? find(row.section, *id) : kNone;
    if (owner == kNone || type(rows_[owner]).substr(0, 12) != "StreamSwitch") continue;
    const std::vector<std::int64_t> list = ints(rows_[owner], "active_stream_list");
    if (row.stream < 0 || std::find(list.begin(), list.end(), row.stream) == list.end()) continue;
    if (relay_of_.empty()) relay_of_.assign(rows_.size(), kNone);
    relay_of_[r] = owner;
    row.kind = Kind::relay;
  }
}

bool Assembler::follow_links() {
  std::size_t claimed = 0;
  for (std::uint32_t r = 0; r < rows_.size(); ++r) {
    const std::size_t end = r + 1 < rows_.size() ? rows_[r + 1].first_link : links_.size();
    if (rows_[r].kind == Kind::sync) continue;
    for (std::size_t i = rows_[r].first_link; i < end; ++i) {
      Link& link = links_[i];
      if (link.index == kAbsent) continue;
      std::uint32_t source = find(rows_[r].section, link.source);
      if (source == kNone) {
        scanner_.fail(rows_[r].place, fmt::format("node \"{}\" reads \"{}\", which the graph does not have", name(rows_[r]), strings_[link.source]));
        return false;
      }
      if (!relay_of_.empty() && relay_of_[source] != kNone) source = relay_of_[source];
      if (link.index >= 0) {
        if (rows_[source].kind == Kind::sync) {
          scanner_.fail(rows_[r].place, fmt::format("node \"{}\" reads an output of \"{}\", which has none", name(rows_[r]), name(rows_[source])));
          return false;
        }
        rows_[source].outputs = std::max(rows_[source].outputs, static_cast<std::uint32_t>(link.index + 1));
      }
      link.source = StringId(source);
    }
  }
  for (Row& row : rows_) {
    if (row.kind == Kind::value) row.outputs = 1;
    if (row.kind == Kind::sync || row.kind == Kind::relay) row.outputs = 0;
    claimed += row.outputs;
    if (claimed > kFreeOutputs + scanner_.text().size() / kBytesAnOutput) {
      scanner_.fail(row.place, fmt::format("node \"{}\" claims {} outputs, more than the text can hold", name(row), row.outputs));
      return false;
    }
  }
  return true;
}

void Assembler::expand(std::uint32_t s, std::vector<std::uint32_t>& out) const {
  for (const std::uint32_t r : sections_[s].rows) {
    out.push_back(r);
    for (const auto& [owner, below] : owned_by(r)) {
      if (!sections_[below].body) expand(below, out);
    }
  }
}

Result<Dump> Assembler::finish(DumpKind kind) {
  if (scanner_.failed()) return scanner_.error();
  Dump out;
  out.kind = kind;
  if (sections_.empty()) return error_at(0, ErrorCode::syntax, "the dump holds no graph");
  if (!find_owners() || !reach(0, 0)) return scanner_.error();
  for (const Section& s : sections_) {
    if (!s.reached) return error_at(s.place, ErrorCode::syntax, fmt::format("the subgraph \"{}\" belongs to a node inside it", s.name));
  }
  if (!index_names()) return scanner_.error();
  find_relays();
  if (!follow_links()) return scanner_.error();
  std::vector<std::uint32_t> rows;
  rows.reserve(rows_.size());
  expand(0, rows);
  scope_of_.assign(sections_.size(), kNone);
  node_of_.assign(rows_.size(), kNone);
  first_value_.assign(rows_.size(), kNone);
  Result<Graph> graph = build(0, rows);
  if (!graph.ok()) {
    Error error = std::move(graph).error();
    if (!error.where) error.at(scanner_.where(0));
    return error;
  }
  MST_TRY(out.schedule, lanes(rows, *graph));
  out.has_streams = !graph->annotations().preset_stream.empty();
  out.graph = *std::move(graph);
  return out;
}

}  // namespace millstream::dump
