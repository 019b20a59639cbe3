// SPDX-License-Identifier: Apache-2.0
#include "millstream/target/profile.h"

#include <array>

#include <fmt/format.h>

namespace millstream {
namespace {

struct Row {
  std::string_view name;
  std::uint32_t streams, events, notifies;
};

constexpr std::array kRows = {
    Row{"default", 2048, 65536, 1024}, Row{"a2", 1984, 65535, 8192},   Row{"train", 2048, 65535, 1024},
    Row{"infer", 1024, 1023, 1024},    Row{"edge", 512, 65535, 2048},
};

}  // namespace

Result<Profile> builtin_profile(std::string_view name) {
  std::string names;
  for (const Row& row : kRows) {
    if (row.name == name) {
      Profile p;
      p.name = std::string(name);
      p.max_streams = row.streams;
      p.max_events = row.events;
      p.max_notifies = row.notifies;
      return p;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return Error{ErrorCode::bad_target, fmt::format("no device profile is called \"{}\"", name)}.help("profiles: " + names);
}

}  // namespace millstream
