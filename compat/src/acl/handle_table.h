// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles of the acl interface: type (8 bits), generation (24), slot (32), packed into the
// pointer. A handle is looked up, never followed, so a stale or random one is only not found.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "millstream/core/result.h"

namespace millstream::acl {

enum class HandleType : std::uint8_t { context = 1, stream, event, notify, model };

/// What a table holds.
struct Object {
  virtual ~Object() = default;
};

/// Look-ups take no lock; they count themselves in the slot's word, and removal waits for that count.
class HandleTable {
  struct Slot {
    /// type (8) | generation (24) | pins (32). Type 0: free, or on its way to be.
    std::atomic<std::uint64_t> word{0};
    std::unique_ptr<Object> object;
    void* handle = nullptr;
  };

 public:
  static constexpr std::uint32_t kLastGeneration = 0xffffff;
  static constexpr std::uint32_t kMost = 1u << 22;

  /// A slot whose generation would pass the last one is not used again.
  explicit HandleTable(std::uint32_t last_generation = kLastGeneration) : last_generation_(last_generation) {}
  ~HandleTable();
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  /// Keeps the object while a call uses it. Move-only.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Pin() { drop(); }
    explicit operator bool() const { return slot_ != nullptr; }
    Object* object() const { return slot_->object.get(); }
    void* handle() const { return slot_->handle; }
    void drop() {
      if (Slot* const slot = std::exchange(slot_, nullptr)) slot->word.fetch_sub(1, std::memory_order_release);
    }

   private:
    friend class HandleTable;
    explicit Pin(Slot* slot) : slot_(slot) {}
    Slot* slot_ = nullptr;
  };

  /// The handle, in the lowest free slot. Errors: over_limit.
  Result<void*> insert(HandleType type, std::unique_ptr<Object> object);
  /// Empty: not live, or of another type.
  Pin find(HandleType type, const void* handle) const;
  /// From now on the handle is not found. Waits until this pin is the only one, then destroys the object. False:
  /// somebody else removes it.
  bool remove(Pin pin);
  /// Of a handle that is not found, for messages: "is an event", "was destroyed", "is no handle".
  std::string why_not_found(const void* handle) const;
  /// Live handles of one type.
  std::uint32_t live(HandleType type) const;

 private:
  static constexpr std::uint32_t kChunk = 1024;
  static constexpr std::uint64_t kPins = 0xffffffff;
  static constexpr std::uint64_t kType = 0xffull << 56;

  Slot* slot(const void* handle) const;

  const std::uint32_t last_generation_;
  std::array<std::atomic<Slot*>, kMost / kChunk> chunks_{};
  std::mutex mutex_;                 // of what follows
  std::uint32_t slots_ = 0;          // made so far
  std::set<std::uint32_t> free_;
};

const char* to_string(HandleType type);

}  // namespace millstream::acl
