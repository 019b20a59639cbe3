// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/notes.h"

namespace millstream {
namespace {

// The tables by the kind of their entries. A new annotation is one name here.
using Texts = SideTable<NodeId, StringId> Annotations::*;
constexpr Texts kTexts[] = {&Annotations::label,  &Annotations::user_label, &Annotations::parallel_group,
                            &Annotations::engine, &Annotations::continuous, &Annotations::batch};
using Lists = SideTable<NodeId, std::vector<StringId>> Annotations::*;
constexpr Lists kLists[] = {&Annotations::activates, &Annotations::multiplex};

// Calls visit(table member) for each table whose entries name no pool.
template <class Visit>
void each_plain(Visit visit) {
  visit(&Annotations::priority);
  visit(&Annotations::new_stream);
  visit(&Annotations::preset_stream);
  visit(&Annotations::thread_scope);
  visit(&Annotations::used_streams);
  visit(&Annotations::cost);
  visit(&Annotations::inner_parallel);
  visit(&Annotations::attached);
  visit(&Annotations::activates_streams);
  visit(&Annotations::roles);
}

}  // namespace

bool has_notes(const Graph& graph, NodeId n) {
  const Annotations& a = graph.annotations();
  bool any = false;
  for (const Texts table : kTexts) any = any || (a.*table).get(n);
  for (const Lists table : kLists) any = any || (a.*table).get(n);
  each_plain([&](auto table) { any = any || (a.*table).get(n); });
  return any;
}

void copy_notes(const Graph& from, NodeId a, Graph& to, NodeId b) {
  const Annotations& f = from.annotations();
  Annotations& t = to.annotations();
  for (const Texts table : kTexts) {
    if (const auto& id = (f.*table).get(a)) (t.*table).set(b, to.intern(from.text(*id)));
  }
  for (const Lists table : kLists) {
    const auto& list = (f.*table).get(a);
    if (!list) continue;
    std::vector<StringId> ids;
    for (const StringId id : *list) ids.push_back(to.intern(from.text(id)));
    (t.*table).set(b, std::move(ids));
  }
  each_plain([&](auto table) {
    if (const auto& note = (f.*table).get(a)) (t.*table).set(b, *note);
  });
}

}  // namespace millstream
