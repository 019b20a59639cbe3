// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <fmt/format.h>

#include "compat/src/acl/objects.h"

namespace millstream::acl {

Result<Settings> settings() {
  Settings out;
  const char* const backend = std::getenv("MILLSTREAM_DEVICE");
  const std::string name = backend == nullptr ? "" : backend;
  if (name == "sim") {
    out.backend = BackendId::sim;
  } else if (!name.empty() && name != "cpu") {
    return Error{ErrorCode::bad_value, fmt::format("the environment variable MILLSTREAM_DEVICE is \"{}\"", name)}.help("cpu or sim");
  }
  const char* const profile = std::getenv("MILLSTREAM_PROFILE");
  if (profile != nullptr && *profile != '\0') {
    Result<Profile> found = load_profile(profile);
    if (!found.ok()) {
      Error error{ErrorCode::bad_value, fmt::format("the environment variable MILLSTREAM_PROFILE is \"{}\": {}", profile, found.error().message)};
      error.notes = found.error().notes;
      error.where = found.error().where;
      return error;
    }
    out.profile = std::move(found).value();
  }
  return out;
}

}  // namespace millstream::acl
