// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "millstream/kernels/tables.h"

namespace millstream {
namespace {

bool before(const KernelEntry& entry, std::string_view type) { return entry.type < type; }

using Table = std::span<const KernelEntry> (*)();
constexpr Table kTables[] = {
    kernels_unary,
    kernels_binary,
    kernels_movement,
    kernels_cast,
    kernels_reduce,
    kernels_pad,
    kernels_indexing,
    kernels_selection,
    kernels_generator,
    kernels_quantize,
    kernels_det,
    kernels_conv,
    kernels_matmul,
    kernels_norm,
    kernels_pool,
    kernels_softmax,
    kernels_recurrent,
    kernels_resize,
    kernels_quant_nn,
    kernels_loss,
    kernels_grid,
    kernels_roi,
    kernels_signal,
    kernels_attention,
    kernels_einsum,
};

}  // namespace

void KernelTable::add(std::span<const KernelEntry> entries) {
  for (const KernelEntry& entry : entries) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), entry.type, before);
    if (at != entries_.end() && at->type == entry.type) {
      *at = entry;
    } else {
      entries_.insert(at, entry);
    }
  }
}

KernelFactory KernelTable::find(std::string_view type) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), type, before);
  return at != entries_.end() && at->type == type ? at->make : nullptr;
}

std::vector<std::string_view> KernelTable::types() const {
  std::vector<std::string_view> out;
  for (const KernelEntry& entry : entries_) out.push_back(entry.type);
  return out;
}

const KernelTable& cpu_kernels() {
  static const KernelTable table = [] {
    KernelTable joined;
    for (const Table& rows : kTables) joined.add(rows());
    return joined;
  }();
  return table;
}

}  // namespace millstream
