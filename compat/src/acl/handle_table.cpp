// SPDX-License-Identifier: Apache-2.0
#include "compat/src/acl/handle_table.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace millstream::acl {

static_assert(sizeof(void*) == 8, "handles need 64 bits");

const char* to_string(HandleType type) {
  switch (type) {
    case HandleType::context: return "a context";
    case HandleType::stream: return "a stream";
    case HandleType::event: return "an event";
    case HandleType::notify: return "a notify";
    case HandleType::model: return "a model";
  }
  return "an object";
}

HandleTable::~HandleTable() {
  for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

HandleTable::Slot* HandleTable::slot(const void* handle) const {
  const auto index = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle));
  if (index >= kMost) return nullptr;
  Slot* const chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk[index % kChunk];
}

Result<void*> HandleTable::insert(HandleType type, std::unique_ptr<Object> object) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (slots_ == kMost) {
      return Error{ErrorCode::over_limit, fmt::format("the process has {} handles, and all are in use or used up", kMost)}.help(
          "destroy objects that are no longer needed");
    }
    if (slots_ % kChunk == 0) chunks_[slots_ / kChunk].store(new Slot[kChunk], std::memory_order_release);
    free_.insert(slots_++);
  }
  const std::uint32_t index = *free_.begin();
  free_.erase(free_.begin());
  Slot& s = chunks_[index / kChunk].load(std::memory_order_relaxed)[index % kChunk];
  const std::uint64_t generation = ((s.word.load(std::memory_order_relaxed) >> 32) & kLastGeneration) + 1;
  const std::uint64_t top = (static_cast<std::uint64_t>(type) << 56) | (generation << 32);
  s.handle = reinterpret_cast<void*>(top | index);
  s.object = std::move(object);
  s.word.store(top, std::memory_order_release);
  return s.handle;
}

HandleTable::Pin HandleTable::find(HandleType type, const void* handle) const {
  const std::uint64_t wanted = reinterpret_cast<std::uintptr_t>(handle) >> 32;
  Slot* const s = slot(handle);
  if (s == nullptr || (wanted >> 24) != static_cast<std::uint64_t>(type)) return {};
  std::uint64_t word = s->word.load(std::memory_order_acquire);
  do {
    if ((word >> 32) != wanted) return {};
  } while (!s->word.compare_exchange_weak(word, word + 1, std::memory_order_acquire, std::memory_order_acquire));
  return Pin(s);
}

bool HandleTable::remove(Pin pin) {
  Slot& s = *pin.slot_;
  if ((s.word.fetch_and(~kType, std::memory_order_acq_rel) & kType) == 0) return false;
  // Calls that have begun may block for long.
  for (unsigned round = 0; (s.word.load(std::memory_order_acquire) & kPins) != 1; ++round) {
    if (round < 64) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  const auto index = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(s.handle));
  const std::uint64_t generation = (s.word.load(std::memory_order_relaxed) >> 32) & kLastGeneration;
  s.object.reset();
  pin.drop();
  if (generation >= last_generation_) return true;
  const std::lock_guard lock(mutex_);
  free_.insert(index);
  return true;
}

std::string HandleTable::why_not_found(const void* handle) const {
  const std::uint64_t top = reinterpret_cast<std::uintptr_t>(handle) >> 32;
  const Slot* const s = slot(handle);
  const std::uint64_t type = top >> 24, generation = top & kLastGeneration;
  if (s != nullptr && type >= 1 && type <= static_cast<std::uint64_t>(HandleType::model)) {
    const std::uint64_t word = s->word.load(std::memory_order_acquire);
    if ((word >> 32) == top) return fmt::format("is {}", to_string(static_cast<HandleType>(type)));
    if (generation != 0 && generation <= ((word >> 32) & kLastGeneration)) {
      return fmt::format("is {} that was destroyed", to_string(static_cast<HandleType>(type)));
    }
  }
  return "is no handle";
}

std::uint32_t HandleTable::live(HandleType type) const {
  std::uint32_t count = 0;
  for (const auto& c : chunks_) {
    const Slot* const chunk = c.load(std::memory_order_acquire);
    if (chunk == nullptr) break;
    for (std::uint32_t i = 0; i < kChunk; ++i) {
      if (chunk[i].word.load(std::memory_order_relaxed) >> 56 == static_cast<std::uint64_t>(type)) ++count;
    }
  }
  return count;
}

}  // namespace millstream::acl
