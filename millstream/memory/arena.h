// SPDX-License-Identifier: Apache-2.0
// Blocks of one growing arena. A free block remembers the last use of its bytes on each stream.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "millstream/core/check.h"

namespace millstream {

/// Best fit in bins by size and by the stream that freed a block, own stream first, a bounded number of
/// candidates. A block may be taken only when every use of its bytes is known to be done. Sizes are multiples
/// of 64. About 48 bytes a block and 12 a use; both are recycled.
class Arena {
 public:
  using Block = std::uint32_t;
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Use {
    std::uint32_t stream = 0;
    std::uint32_t place = 0;  ///< 1 + index of the task in its stream
    std::uint32_t next = kNone;
  };

  Arena(std::size_t streams, bool reuse) : bins_(streams), reuse_(reuse) {
    for (auto& row : bins_) row.heads.fill(kNone);
  }

  std::uint64_t end() const { return end_; }
  std::uint64_t offset(Block b) const { return blocks_[b].offset; }

  /// `known(t)`: tasks of stream t done before the taker. `relied(use)` hears each use that the new
  /// owner of the bytes must come behind.
  template <class Known, class Relied>
  Block take(std::uint64_t size, std::uint32_t stream, const Known& known, const Relied& relied) {
    Block b = reuse_ ? find(size, stream, known) : kNone;
    if (b == kNone) return grow(size, known, relied);
    unlink(b);
    if (blocks_[b].size > size) split(b, size);
    surrender(b, relied);
    return b;
  }

  /// The task at `place` of `stream` uses the block. Places of one stream only rise.
  void use(Block b, std::uint32_t stream, std::uint32_t place) {
    for (std::uint32_t u = blocks_[b].uses; u != kNone; u = uses_[u].next) {
      if (uses_[u].stream != stream) continue;
      uses_[u].place = std::max(uses_[u].place, place);
      return;
    }
    blocks_[b].uses = new_use({stream, place, blocks_[b].uses});
  }

  void give_back(Block b, std::uint32_t stream) {
    blocks_[b].owner = stream;
    b = merge(b, blocks_[b].prev);
    b = merge(b, blocks_[b].next);
    link(b);
  }

 private:
  // Quarters of powers of two of 64 bytes.
  static constexpr std::size_t kBins = 4 * 59;
  static constexpr int kCandidatesABin = 16;
  static constexpr int kCandidates = 96;

  struct Row {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    Block prev = kNone, next = kNone;          // by offset
    Block bin_prev = kNone, bin_next = kNone;  // free blocks of one bin
    std::uint32_t uses = kNone;
    std::uint32_t owner = 0;                   // stream that freed it
    bool free = false;
  };
  struct Bins {
    std::array<Block, kBins> heads;
    std::array<std::uint64_t, (kBins + 63) / 64> filled{};
  };

  static std::size_t bin_of(std::uint64_t size) {
    const std::uint64_t units = size / 64;
    const int log = std::bit_width(units) - 1;
    const std::uint64_t quarter = log >= 2 ? (units >> (log - 2)) & 3 : (units << (2 - log)) & 3;
    return static_cast<std::size_t>(log) * 4 + quarter;
  }

  template <class Known>
  bool ready(Block b, const Known& known) const {
    for (std::uint32_t u = blocks_[b].uses; u != kNone; u = uses_[u].next) {
      if (known(uses_[u].stream) < uses_[u].place) return false;
    }
    return true;
  }

  template <class Known>
  Block find(std::uint64_t size, std::uint32_t stream, const Known& known) const {
    int left = kCandidates;
    for (std::size_t i = 0; i < bins_.size() && left > 0; ++i) {
      const std::size_t s = (stream + i) % bins_.size();
      const Block b = find_in(bins_[s], size, known, left);
      if (b != kNone) return b;
    }
    return kNone;
  }

  template <class Known>
  Block find_in(const Bins& bins, std::uint64_t size, const Known& known, int& left) const {
    --left;  // a look at an empty table counts too
    for (std::size_t bin = bin_of(size); bin < kBins; ++bin) {
      const std::uint64_t word = bins.filled[bin / 64] >> (bin % 64);
      if (word == 0) {
        bin = bin / 64 * 64 + 63;
        continue;
      }
      bin += static_cast<std::size_t>(std::countr_zero(word));
      Block best = kNone;
      int tries = kCandidatesABin;
      for (Block b = bins.heads[bin]; b != kNone && tries > 0 && left > 0; b = blocks_[b].bin_next, --tries, --left) {
        if (blocks_[b].size < size || (best != kNone && blocks_[best].size <= blocks_[b].size)) continue;
        if (ready(b, known)) best = b;
      }
      if (best != kNone || left <= 0) return best;
    }
    return kNone;
  }

  // At the arena's end, over the last block when that is free and done with.
  template <class Known, class Relied>
  Block grow(std::uint64_t size, const Known& known, const Relied& relied) {
    if (reuse_ && last_ != kNone && blocks_[last_].free && blocks_[last_].size < size && ready(last_, known)) {
      const Block b = last_;
      unlink(b);
      blocks_[b].size = size;
      end_ = blocks_[b].offset + size;
      surrender(b, relied);
      return b;
    }
    const Block b = new_block();
    Row& row = blocks_[b];
    row.offset = end_;
    row.size = size;
    row.prev = last_;
    if (last_ != kNone) blocks_[last_].next = b;
    last_ = b;
    end_ += size;
    return b;
  }

  void split(Block b, std::uint64_t size) {
    const Block rest = new_block();
    Row& row = blocks_[b];
    Row& right = blocks_[rest];
    right.offset = row.offset + size;
    right.size = row.size - size;
    right.prev = b;
    right.next = row.next;
    right.owner = row.owner;
    if (row.next != kNone) blocks_[row.next].prev = rest;
    if (last_ == b) last_ = rest;
    row.next = rest;
    row.size = size;
    for (std::uint32_t u = row.uses; u != kNone; u = uses_[u].next) {
      const Use copy{uses_[u].stream, uses_[u].place, blocks_[rest].uses};
      blocks_[rest].uses = new_use(copy);
    }
    link(rest);
  }

  // The block's old uses are reported and forgotten: whoever comes behind the new owner comes behind them.
  template <class Relied>
  void surrender(Block b, const Relied& relied) {
    while (blocks_[b].uses != kNone) {
      const std::uint32_t u = blocks_[b].uses;
      relied(uses_[u]);
      blocks_[b].uses = uses_[u].next;
      free_uses_.push_back(u);
    }
  }

  // Joined blocks become ready together, so only those join that wait for the same streams.
  Block merge(Block b, Block other) {
    if (other == kNone || !blocks_[other].free || !same_streams(b, other)) return b;
    unlink(other);
    const Block left = blocks_[b].offset < blocks_[other].offset ? b : other;
    const Block right = left == b ? other : b;
    const std::uint32_t owner = blocks_[b].owner;
    for (std::uint32_t u = blocks_[right].uses; u != kNone;) {
      const std::uint32_t next = uses_[u].next;
      use(left, uses_[u].stream, uses_[u].place);
      free_uses_.push_back(u);
      u = next;
    }
    blocks_[left].size += blocks_[right].size;
    blocks_[left].next = blocks_[right].next;
    blocks_[left].owner = owner;
    if (blocks_[right].next != kNone) blocks_[blocks_[right].next].prev = left;
    if (last_ == right) last_ = left;
    free_blocks_.push_back(right);
    return left;
  }

  bool same_streams(Block a, Block b) const { return within(a, b) && within(b, a); }
  bool within(Block a, Block b) const {
    for (std::uint32_t u = blocks_[a].uses; u != kNone; u = uses_[u].next) {
      bool found = false;
      for (std::uint32_t w = blocks_[b].uses; w != kNone && !found; w = uses_[w].next) {
        found = uses_[w].stream == uses_[u].stream;
      }
      if (!found) return false;
    }
    return true;
  }

  void link(Block b) {
    Row& row = blocks_[b];
    Bins& bins = bins_[row.owner];
    const std::size_t bin = bin_of(row.size);
    row.free = true;
    row.bin_prev = kNone;
    row.bin_next = bins.heads[bin];
    if (row.bin_next != kNone) blocks_[row.bin_next].bin_prev = b;
    bins.heads[bin] = b;
    bins.filled[bin / 64] |= std::uint64_t{1} << (bin % 64);
  }

  void unlink(Block b) {
    Row& row = blocks_[b];
    Bins& bins = bins_[row.owner];
    const std::size_t bin = bin_of(row.size);
    row.free = false;
    if (row.bin_next != kNone) blocks_[row.bin_next].bin_prev = row.bin_prev;
    if (row.bin_prev != kNone) {
      blocks_[row.bin_prev].bin_next = row.bin_next;
      return;
    }
    bins.heads[bin] = row.bin_next;
    if (row.bin_next == kNone) bins.filled[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  }

  Block new_block() {
    if (free_blocks_.empty()) {
      blocks_.push_back({});
      return static_cast<Block>(blocks_.size() - 1);
    }
    const Block b = free_blocks_.back();
    free_blocks_.pop_back();
    blocks_[b] = {};
    return b;
  }

  std::uint32_t new_use(Use use) {
    if (free_uses_.empty()) {
      uses_.push_back(use);
      return static_cast<std::uint32_t>(uses_.size() - 1);
    }
    const std::uint32_t u = free_uses_.back();
    free_uses_.pop_back();
    uses_[u] = use;
    return u;
  }

  std::vector<Row> blocks_;
  std::vector<Block> free_blocks_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> free_uses_;
  std::vector<Bins> bins_;  // by stream
  Block last_ = kNone;
  std::uint64_t end_ = 0;
  bool reuse_;
};

}  // namespace millstream
