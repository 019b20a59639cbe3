// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/foreign_code.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "millstream/pass/foreign_code.h"
#include "tools/millstream/common.h"

namespace millstream::cli {
namespace {

constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

bool apart = false;                    // stdout is for one object
const ForeignCode* running = nullptr;  // null: none of it runs
int standard_output = -1;              // where stdout leads, while it leads to stderr
bool guarded = false;
std::terminate_handler terminate_before = nullptr;
struct sigaction before[std::size(kCrashes)];

void flush() {
  std::cout.flush();
  std::fflush(stdout);
}

void take_output_back() {
  flush();
  if (standard_output == -1) return;
  ::dup2(standard_output, STDOUT_FILENO);
  ::close(standard_output);
  standard_output = -1;
}

[[noreturn]] void ended(const std::string& how) {
  const ForeignCode code = *running;
  running = nullptr;
  take_output_back();
  const int status = fail(Error{code.code, fmt::format("{} ended the program: {}", code.what, how)}
                              .note("the command did not finish")
                              .help("mend the pass, or leave its library out: a pass that does not want a graph returns another number than 0"));
  std::fflush(stdout);
  ::_exit(status);
}

void at_exit() {
  if (running != nullptr) ended("it called exit");
}

void at_terminate() {
  if (running == nullptr) {
    terminate_before();
    std::abort();
  }
  std::string how = "an exception that nobody caught";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& e) {
    how += fmt::format(": {}", e.what());
  } catch (...) {
    how += ", which is no std::exception";
  }
  ended(how);
}

// Says whose crash it is and leaves the rest to who handled it before: the fault, or abort, comes again.
void at_crash(int signal) {
  for (std::size_t i = 0; i < std::size(kCrashes); ++i) ::sigaction(kCrashes[i], &before[i], nullptr);
  if (running != nullptr) {
    for (const char* part : {"error: ", running->what.c_str(), " crashed the program\n"}) (void)!::write(STDERR_FILENO, part, std::strlen(part));
  }
  // A signal that was sent does not come again by itself.
  if (signal != SIGABRT) ::raise(signal);
}

// Late, so that what runs at exit still finds all that errors are printed with.
void guard() {
  if (guarded) return;
  guarded = true;
  std::atexit(at_exit);
  terminate_before = std::set_terminate(at_terminate);
  struct sigaction action {};
  action.sa_handler = at_crash;
  for (std::size_t i = 0; i < std::size(kCrashes); ++i) ::sigaction(kCrashes[i], &action, &before[i]);
}

void watch(const ForeignCode* begins) {
  if (begins != nullptr) {
    guard();
    flush();
    if (apart && (standard_output = ::dup(STDOUT_FILENO)) != -1) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  } else {
    take_output_back();
  }
  running = begins;
}

}  // namespace

void guard_foreign_code(bool json) {
  apart = json;
  watch_foreign_code(watch);
}

}  // namespace millstream::cli
