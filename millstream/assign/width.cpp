// SPDX-License-Identifier: Apache-2.0
#include "millstream/assign/width.h"

#include <algorithm>
#include <optional>

namespace millstream {
namespace {

using Word = std::uint64_t;

// Bit rows over the counted nodes.
class BitRows {
 public:
  BitRows(std::size_t rows, std::size_t bits) : words_((bits + 63) / 64), bits_(rows * words_, 0) {}
  Word* row(std::size_t i) { return bits_.data() + i * words_; }
  const Word* row(std::size_t i) const { return bits_.data() + i * words_; }
  std::size_t words() const { return words_; }

 private:
  std::size_t words_;
  std::vector<Word> bits_;
};

// Maximum matching of "a before b" pairs, by augmenting paths (Kuhn) over bit rows; then Konig.
class Matching {
 public:
  Matching(const BitRows& before, std::size_t n) : before_(before), n_(n), left_of_(n), right_of_(n) {
    for (std::size_t a = 0; a < n_; ++a) {
      unseen_.assign(before_.words(), ~Word{0});
      augment(a);
    }
  }

  // Left vertices reached by alternating paths from unmatched left ones are kept unless their right
  // copy is reached too.
  std::vector<std::uint32_t> antichain() const {
    std::vector<char> left(n_, 0), right(n_, 0);
    std::vector<std::size_t> work;
    for (std::size_t a = 0; a < n_; ++a) {
      if (!right_of_[a]) {
        left[a] = 1;
        work.push_back(a);
      }
    }
    while (!work.empty()) {
      const std::size_t a = work.back();
      work.pop_back();
      for (std::size_t b = 0; b < n_; ++b) {
        if ((before_.row(a)[b / 64] >> (b % 64) & 1) == 0 || right[b]) continue;
        right[b] = 1;
        if (left_of_[b] && !left[*left_of_[b]]) {
          left[*left_of_[b]] = 1;
          work.push_back(*left_of_[b]);
        }
      }
    }
    std::vector<std::uint32_t> out;
    for (std::size_t a = 0; a < n_; ++a) {
      if (left[a] && !right[a]) out.push_back(static_cast<std::uint32_t>(a));
    }
    return out;
  }

 private:
  // Depth is at most the number of counted nodes (kExactWidthNodes): recursion is safe.
  bool augment(std::size_t a) {
    const Word* row = before_.row(a);
    for (std::size_t w = 0; w < before_.words(); ++w) {
      while (const Word open = row[w] & unseen_[w]) {
        const std::size_t b = w * 64 + static_cast<std::size_t>(__builtin_ctzll(open));
        unseen_[w] &= ~(Word{1} << (b % 64));
        if (!left_of_[b] || augment(*left_of_[b])) {
          left_of_[b] = a;
          right_of_[a] = b;
          return true;
        }
      }
    }
    return false;
  }

  const BitRows& before_;
  std::size_t n_;
  std::vector<std::optional<std::size_t>> left_of_;   // by right vertex
  std::vector<std::optional<std::size_t>> right_of_;  // by left vertex
  std::vector<Word> unseen_;
};

Width exact_width(const TaskGraph& tasks, const std::vector<NodeId>& counted) {
  constexpr std::uint32_t kNone = 0xffffffffu;
  IdVec<NodeId, std::uint32_t> number(tasks.node_count(), kNone);
  for (std::size_t i = 0; i < counted.size(); ++i) number[counted[i]] = static_cast<std::uint32_t>(i);
  // Ancestors of every node (counted ones only), then transposed.
  BitRows ancestors(tasks.node_count(), counted.size());
  BitRows before(counted.size(), counted.size());
  for (const NodeId v : tasks.order()) {
    Word* row = ancestors.row(v.index);
    for (const NodeId u : tasks.predecessors(v)) {
      const Word* other = ancestors.row(u.index);
      for (std::size_t w = 0; w < ancestors.words(); ++w) row[w] |= other[w];
      if (number[u] != kNone) row[number[u] / 64] |= Word{1} << (number[u] % 64);
    }
    if (number[v] == kNone) continue;
    for (std::size_t a = 0; a < counted.size(); ++a) {
      if (row[a / 64] >> (a % 64) & 1) before.row(a)[number[v] / 64] |= Word{1} << (number[v] % 64);
    }
  }
  Width out;
  out.exact = true;
  for (const std::uint32_t i : Matching(before, counted.size()).antichain()) {
    out.antichain.push_back(counted[i]);
  }
  std::sort(out.antichain.begin(), out.antichain.end());
  return out;
}

// Nodes of one longest-path level are independent: each is deeper than all its ancestors.
std::vector<NodeId> fullest_level(const IdVec<NodeId, std::uint32_t>& level, const std::vector<NodeId>& counted) {
  std::vector<std::uint32_t> size;
  for (const NodeId v : counted) {
    if (size.size() <= level[v]) size.resize(level[v] + 1, 0);
    ++size[level[v]];
  }
  const auto best = static_cast<std::uint32_t>(std::max_element(size.begin(), size.end()) - size.begin());
  std::vector<NodeId> out;
  for (const NodeId v : counted) {
    if (level[v] == best) out.push_back(v);
  }
  return out;
}

}  // namespace

Width width_of(const TaskGraph& tasks, const IdVec<NodeId, std::uint8_t>& counts) {
  std::vector<NodeId> counted;
  for (const NodeId v : tasks.order()) {
    if (counts.empty() || counts[v]) counted.push_back(v);
  }
  if (counted.empty()) return {{}, true};
  // Ancestor rows cover every node: their size bounds the exact way too.
  if (counted.size() <= kExactWidthNodes && tasks.node_count() <= 16 * kExactWidthNodes) {
    return exact_width(tasks, counted);
  }
  IdVec<NodeId, std::uint32_t> from_entry(tasks.node_count(), 0);
  for (const NodeId v : tasks.order()) {
    for (const NodeId u : tasks.predecessors(v)) from_entry[v] = std::max(from_entry[v], from_entry[u] + 1);
  }
  IdVec<NodeId, std::uint32_t> from_exit(tasks.node_count(), 0);
  const auto order = tasks.order();
  for (std::size_t i = order.size(); i-- > 0;) {
    for (const NodeId u : tasks.predecessors(order[i])) {
      from_exit[u] = std::max(from_exit[u], from_exit[order[i]] + 1);
    }
  }
  Width out;
  out.antichain = fullest_level(from_entry, counted);
  std::vector<NodeId> other = fullest_level(from_exit, counted);
  if (other.size() > out.antichain.size()) out.antichain = std::move(other);
  std::sort(out.antichain.begin(), out.antichain.end());
  return out;
}

}  // namespace millstream
