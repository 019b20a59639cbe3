// SPDX-License-Identifier: Apache-2.0
// What a lane can be parked on, and the counted signals behind events, synchronisation and completions.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "millstream/core/error.h"
#include "millstream/runtime/signal.h"

namespace millstream::rt {

using Signal = BasicSignal<RealAtomics>;

/// Something that a parked lane waits for. Counted; made with one reference.
class Awaited {
 public:
  virtual ~Awaited() = default;
  /// Takes the waiter out; see BasicSignal::remove. Thread-safe.
  virtual Signal::Removal remove(Waiter& waiter) = 0;
  /// "event 3", for reports.
  virtual std::string describe() const = 0;
  /// DeviceState::id of the one whose tasks record it; 0: that of who waits.
  virtual std::uint64_t home() const { return 0; }

  void hold() { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  std::atomic<std::uint32_t> references_{1};
};

/// Owns one reference.
template <class T>
class Ref {
 public:
  Ref() = default;
  static Ref adopt(T* object) {
    Ref r;
    r.object_ = object;
    return r;
  }
  static Ref share(T* object) {
    if (object != nullptr) object->hold();
    return adopt(object);
  }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_ != nullptr) object_->hold();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->drop();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* release() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

/// One record of an event, one host's wait, one execution: published once (a latch's again after a reset).
class Completion final : public Awaited {
 public:
  enum class What : std::uint8_t { event, latch, sync, execution };
  Completion(What what, std::uint32_t number) : what_(what), number_(number) {}

  Signal signal;
  /// Written before the publication, read after it. A latch is published again and again: its are under the lock, and
  /// `publish`, `reset`, `failure` and `time` take it.
  std::uint64_t time_ns = 0;
  std::uint64_t serial = 0;      ///< of this record in a trace; 0: not traced
  std::unique_ptr<Error> error;  ///< the record was dropped, the execution failed
  std::uint64_t context = 0;     ///< ContextState::id of the stream whose record was dropped
  std::uint64_t device = 0;      ///< of an event: what `home` says

  What what() const { return what_; }
  std::uint32_t number() const { return number_; }
  /// Returns who waited. A latch that is set stays as it is, but a good record makes up for one that was dropped.
  Waiter* publish(std::uint64_t at_ns, std::unique_ptr<Error> why, std::uint64_t of_context);
  void reset();
  /// A latch: a record of it is queued, which publishes it; or it was queued no more than asked for.
  void expect();
  void expect_no_more();
  bool expected();

  struct Failure {
    Error error;
    std::uint64_t context = 0;
  };
  /// Of what has been published.
  std::optional<Failure> failure();
  std::uint64_t time();

  Signal::Removal remove(Waiter& waiter) override {
    const std::lock_guard one(lock_);
    return signal.remove(waiter);
  }
  std::string describe() const override;
  std::uint64_t home() const override { return device; }

 private:
  const What what_;
  const std::uint32_t number_;
  SpinLock lock_;
  std::uint32_t queued_ = 0;  // records of a latch
};

}  // namespace millstream::rt
