// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime_trace/random_parts.h"

#include <cstring>
#include <stdexcept>

namespace millstream::rt {

std::uint64_t Random::next() {  // splitmix64
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdull; }

void apply(const Update& u) {
  if (u.read != nullptr) *u.number = mix(*u.number, *u.read);
  *u.number = mix(*u.number, u.id);
  if (u.write != nullptr) *u.write = *u.number;
}

void apply(const Count& c) { *c.cell = (*c.cell + 1) % c.bound; }

namespace {

template <class T>
T argument(const KernelCall& call) {
  T value{};
  std::memcpy(&value, call.arguments.data(), call.arguments.size());
  return value;
}

Result<void> update_body(const KernelCall& call) {
  apply(argument<Update>(call));
  return {};
}
Result<void> loose_body(const KernelCall& call) {
  const Update u = argument<Update>(call);
  std::uint64_t number = std::atomic_ref(*u.number).load(std::memory_order_relaxed);
  std::uint64_t read = u.read == nullptr ? 0 : std::atomic_ref(*const_cast<std::uint64_t*>(u.read)).load(std::memory_order_relaxed);
  apply(Update{&number, u.id, u.read == nullptr ? nullptr : &read, nullptr});
  std::atomic_ref(*u.number).store(number, std::memory_order_relaxed);
  if (u.write != nullptr) std::atomic_ref(*u.write).store(number, std::memory_order_relaxed);
  return {};
}
Result<void> fail_body(const KernelCall& call) {
  update_body(call).ok();
  return Error{ErrorCode::kernel, "as the program wants"};
}
Result<void> throw_body(const KernelCall& call) {
  update_body(call).ok();
  throw std::runtime_error("as the program wants");
}
Result<void> count_body(const KernelCall& call) {
  apply(argument<Count>(call));
  return {};
}

}  // namespace

const KernelFunction kUpdate{"update", update_body, 3, 0};
const KernelFunction kSlowUpdate{"slow_update", update_body, 40, 1};
const KernelFunction kFail{"fail", fail_body, 2, 0};
const KernelFunction kThrow{"throw", throw_body, 2, 0};
const KernelFunction kLooseUpdate{"loose_update", loose_body, 3, 0};
const KernelFunction kNothing{"nothing", nullptr, 1, 0};
const KernelFunction kCount{"count", count_body, 1, 0};

void call_back(void* callback) {
  auto& c = *static_cast<Callback*>(callback);
  apply(c.update);
  const Result<void> sync = c.context->synchronize();
  if (sync.ok() || sync.error().code != ErrorCode::in_callback) ++*c.wrong_codes;
  if (c.throws) throw std::runtime_error("as the program wants");
}

}  // namespace millstream::rt
