// SPDX-License-Identifier: Apache-2.0
// What random programs are made of: draws, and kernels whose order their numbers show.
#pragma once

#include <atomic>
#include <cstdint>

#include "millstream/runtime/context.h"
#include "millstream/runtime/kernel_function.h"

namespace millstream::rt {

struct Random {
  std::uint64_t state;
  std::uint64_t next();
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(next() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
};

std::uint64_t mix(std::uint64_t a, std::uint64_t b);

/// What kernels are launched with: the stream's number changes by `id` and by what another stream has left.
struct Update {
  std::uint64_t* number;
  std::uint64_t id;
  const std::uint64_t* read;
  std::uint64_t* write;
};
void apply(const Update& u);
extern const KernelFunction kUpdate, kSlowUpdate, kFail, kThrow;
/// Its numbers may be touched by others at the same time.
extern const KernelFunction kLooseUpdate;
extern const KernelFunction kNothing;

/// 0, 1, ... bound - 1, 0, ...
struct Count {
  std::uint64_t* cell;
  std::uint64_t bound;
};
void apply(const Count& c);
extern const KernelFunction kCount;

/// A host function: an update, and a call that it may not make.
struct Callback {
  Update update;
  Context* context = nullptr;
  bool throws = false;
  std::atomic<int>* wrong_codes = nullptr;
};
void call_back(void* callback);

}  // namespace millstream::rt
