// SPDX-License-Identifier: Apache-2.0
// A model instance drawn from a seed: heads and activated streams, hand-overs by events and notifies, loops, branches and
// jumps by memory. What its numbers come to is known from a serial run of what was recorded.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "millstream/runtime/model.h"
#include "tests/runtime_trace/random_parts.h"

namespace millstream::rt {

/// What a model is drawn with.
struct ModelPlace {
  Context* context = nullptr;
  Stream* home = nullptr;    ///< fills and records once what the model waits for outside
  std::deque<std::uint64_t>* memory = nullptr;  ///< empty; the home may touch it after the model's end
  Stream* shared = nullptr;  ///< bound too, if it may be
  /// Nothing is dropped and every wait comes to its end: numbers are known. Else it may go wrong in every way.
  bool calm = true;
  std::vector<std::shared_ptr<Event>> events;      ///< of the program; only wild models use them
  std::vector<std::shared_ptr<Notify>> notifies;
  std::atomic<int>* wrong_codes = nullptr;
};

class RandomModel {
 public:
  /// Records and finishes one. Errors: the first answer that refused a call.
  static Result<std::shared_ptr<RandomModel>> build(std::uint64_t seed, const ModelPlace& place);
  RandomModel(std::uint64_t seed, const ModelPlace& place);

  Model& model() { return *model_; }
  Stream& stream(std::uint32_t n) { return *bound_[n % bound_.size()]; }
  /// A number that each execution leaves, and what the executions so far should have left there.
  const std::uint64_t* result() const { return &memory_[numbers_.front()]; }
  std::uint64_t expected_result() const { return expected_[numbers_.front()]; }
  /// One more execution was asked for.
  void expect_execution();
  /// Whether memory is as after a serial run of the executions. Nothing may run.
  bool as_expected() const;

 private:
  struct Op {
    enum class What : std::uint8_t { update, count, record, wait, notify, notify_wait, activate, choose, choose_n, label, jump, jump_by_index };
    What what;
    std::uint32_t a = 0, b = 0;            // cells (kNone: none), records, notifies, streams
    std::uint64_t id = 0;                  // an update's; a count's bound; of a choice whether it is of equality
    std::vector<std::uint32_t> list = {};  // streams or labels
  };
  static constexpr std::uint32_t kNone = 0xffffffffu;

  Result<void> record_all();
  Result<void> step(std::uint32_t s);
  Result<void> ending(std::uint32_t s);
  Result<void> mischief(std::uint32_t s);
  Result<std::uint32_t> new_stream(StreamRole role, Stream* shared = nullptr);
  std::uint32_t any_head() { return random_.below(heads_); }
  std::uint32_t new_cell(std::uint64_t value = 0);
  Result<std::uint32_t> new_label();
  Event new_event() { return std::move(*place_.context->create_event(Event::Kind::snapshot)); }
  Event& event(bool fresh);

  Result<void> update(std::uint32_t s, std::uint32_t read = kNone, std::uint32_t write = kNone);
  Result<void> callback(std::uint32_t s);
  Result<void> count(std::uint32_t s, std::uint32_t cell, std::uint64_t bound);
  Result<void> record(std::uint32_t s, Event& e);
  Result<void> wait(std::uint32_t s, Event& e);
  Result<void> place_label(std::uint32_t s, std::uint32_t label);
  Result<void> activate(std::uint32_t s, std::uint32_t target);
  Result<void> choose(std::uint32_t s, Comparison condition, std::uint32_t left, std::uint32_t right, std::uint32_t on_true, std::uint32_t on_false);
  Result<void> jump(std::uint32_t s, std::uint32_t label);
  Result<void> jump_by_index(std::uint32_t s, std::uint32_t cell, std::vector<std::uint32_t> labels);
  Result<void> loop(std::uint32_t s);
  Result<void> loop_end(std::uint32_t s, std::uint32_t label, std::uint64_t bound);
  Result<void> body(std::uint32_t s);
  Result<void> hand_over(std::uint32_t from, std::uint32_t to);
  Result<void> paired_loop(std::uint32_t a, std::uint32_t b);
  Result<void> spawn(std::uint32_t s);
  Result<void> await_outside(std::uint32_t s);
  Tape tape(std::uint32_t s) { return Tape(*bound_[s]); }

  Random random_;
  const ModelPlace place_;
  const bool straight_;  // no control flow: what the fast way runs
  bool shares_ = false;
  std::uint32_t heads_ = 0;

  std::deque<std::uint64_t>& memory_;
  std::vector<std::uint64_t> expected_;
  std::vector<std::uint32_t> numbers_;  // of each stream: its cell
  std::deque<Callback> callbacks_;
  std::vector<std::vector<Op>> ops_;    // of each stream
  std::vector<bool> is_head_;
  // Records of events as the model ties waits to them.
  struct Tie {
    const EventState* event;
    std::uint32_t stream;
    std::uint32_t at;  // a record's number, a wait's place on its tape
  };
  std::vector<Tie> last_record_, open_waits_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> label_at_;  // stream and place
  std::uint32_t records_ = 0;

  std::deque<Stream> streams_;
  std::vector<Stream*> bound_;
  std::deque<Event> events_, outside_;
  std::deque<Notify> notifies_;
  std::deque<Label> labels_;
  std::optional<Model> model_;
};

}  // namespace millstream::rt
