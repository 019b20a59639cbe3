// SPDX-License-Identifier: Apache-2.0
#include "tests/interleave/explorer.h"

#include <ucontext.h>

#include <algorithm>

#include <fmt/format.h>

namespace millstream::interleave {
namespace {

struct Access {
  const void* where = nullptr;
  bool writes = false;
  bool waits = false;  // for any write

  bool depends_on(const Access& other) const {
    if (waits || other.waits) return writes || other.writes;
    return where == other.where && (writes || other.writes);
  }
};

struct Fibre {
  static constexpr std::size_t kStack = 128 * 1024;
  ucontext_t context{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStack);
  std::function<void()> body;
  Access next;
  bool over = false;
  // What it has looked at since it last went on from a wait, and how often that had been written.
  std::vector<std::pair<const void*, std::uint64_t>> seen;
};

struct Choice {
  std::uint32_t enabled = 0, asleep = 0, done = 0;  // bits of threads
  std::uint32_t thread = 0;
  std::vector<Access> next;                         // of each thread
};

class Explorer {
 public:
  explicit Explorer(const std::function<Program()>& make) : make_(make) {}

  Explored run();

  void stop_before(Access what) {
    Fibre& f = fibres_[running_];
    f.next = what;
    swapcontext(&f.context, &main_);
    if (what.waits) return f.seen.clear();
    const std::uint64_t version = what.writes ? ++versions(what.where) : versions(what.where);
    for (auto& [where, old] : f.seen) {
      if (where == what.where) return void(old = version);
    }
    f.seen.emplace_back(what.where, version);
  }
  void fail(const std::string& text) {
    if (!wrong_) wrong_ = text;
  }

 private:
  void start(std::size_t i, std::function<void()> body);
  void resume(std::size_t i) {
    running_ = i;
    swapcontext(&main_, &fibres_[i].context);
  }
  std::uint64_t& versions(const void* where) {
    for (auto& [known, version] : versions_) {
      if (known == where) return version;
    }
    return versions_.emplace_back(where, 0).second;
  }
  bool can_go(const Fibre& f) {
    return !f.over && (!f.next.waits || std::any_of(f.seen.begin(), f.seen.end(), [&](const auto& s) { return versions(s.first) != s.second; }));
  }
  void one_order();
  bool next_order();
  static void enter();

  const std::function<Program()>& make_;
  std::vector<Fibre> fibres_;
  ucontext_t main_{};
  std::size_t running_ = 0;
  std::vector<std::pair<const void*, std::uint64_t>> versions_;  // writes of each word in this order
  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::optional<std::string> wrong_;
  Explored out_;
};

Explorer* current = nullptr;

void Explorer::enter() {
  Explorer& self = *current;
  Fibre& f = self.fibres_[self.running_];
  f.body();
  f.over = true;
  swapcontext(&f.context, &self.main_);
}

void Explorer::start(std::size_t i, std::function<void()> body) {
  Fibre& f = fibres_[i];
  f.body = std::move(body);
  f.over = false;
  f.seen.clear();
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack.get();
  f.context.uc_stack.ss_size = Fibre::kStack;
  f.context.uc_link = nullptr;
  makecontext(&f.context, &Explorer::enter, 0);
}

void Explorer::one_order() {
  Program program = make_();
  if (fibres_.empty()) fibres_ = std::vector<Fibre>(program.threads.size());
  versions_.clear();
  current = this;
  for (std::size_t i = 0; i < fibres_.size(); ++i) {
    start(i, program.threads[i]);
    resume(i);  // to its first access
  }
  bool redundant = false;
  for (depth_ = 0; !wrong_; ++depth_) {
    if (depth_ == path_.size()) {
      Choice c;
      for (std::uint32_t t = 0; t < fibres_.size(); ++t) {
        c.next.push_back(fibres_[t].next);
        if (can_go(fibres_[t])) c.enabled |= 1u << t;
      }
      if (!path_.empty()) {
        const Choice& before = path_.back();
        for (std::uint32_t t = 0; t < fibres_.size(); ++t) {
          const bool slept = ((before.asleep | before.done) >> t & 1u) != 0;
          if (slept && t != before.thread && !before.next[t].depends_on(before.next[before.thread])) c.asleep |= 1u << t;
        }
      }
      const std::uint32_t awake = c.enabled & ~c.asleep;
      if (awake == 0) {
        redundant = c.enabled != 0;
        break;
      }
      c.thread = static_cast<std::uint32_t>(__builtin_ctz(awake));
      path_.push_back(std::move(c));
      ++out_.states;
    }
    resume(path_[depth_].thread);
  }
  const bool all_over = std::all_of(fibres_.begin(), fibres_.end(), [](const Fibre& f) { return f.over; });
  if (!wrong_ && !redundant && !all_over) {
    std::string who;
    for (std::size_t i = 0; i < fibres_.size(); ++i) who += fibres_[i].over ? "" : fmt::format(" {}", i);
    wrong_ = "nobody goes on; left are threads" + who;
  }
  current = nullptr;
  if (!wrong_ && all_over) {
    ++out_.orders;
    wrong_ = program.wrong();
  }
}

bool Explorer::next_order() {
  while (!path_.empty()) {
    Choice& c = path_.back();
    c.done |= 1u << c.thread;
    if (const std::uint32_t left = c.enabled & ~c.asleep & ~c.done; left != 0) {
      c.thread = static_cast<std::uint32_t>(__builtin_ctz(left));
      return true;
    }
    path_.pop_back();
  }
  return false;
}

Explored Explorer::run() {
  do {
    one_order();
    if (wrong_) {
      std::string order;
      for (const Choice& c : path_) order += fmt::format(" {}", c.thread);
      out_.wrong = *wrong_ + "; order:" + order;
      return out_;
    }
  } while (next_order());
  return out_;
}

}  // namespace

Explored explore(const std::function<Program()>& make) { return Explorer(make).run(); }

void require(bool holds, const char* what) {
  if (!holds && current != nullptr) current->fail(what);
}

void access(const void* where, bool writes) {
  if (current != nullptr) current->stop_before({where, writes, false});
}

void wait_for_write() {
  if (current != nullptr) current->stop_before({nullptr, false, true});
}

}  // namespace millstream::interleave
