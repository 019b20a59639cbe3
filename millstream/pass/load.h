// SPDX-License-Identifier: Apache-2.0
// Finding and loading libraries with stream passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millstream/pass/library.h"
#include "millstream/pass/pass.h"

namespace millstream {

struct FoundLibraries {
  std::vector<std::string> paths;  ///< in the order they load
  std::vector<Error> warnings;
};

/// FOLDER/vendors/VENDOR/custom_fusion_passes/*.so for each folder in turn: vendors, then files, by the bytes of their names.
/// What is not there is nothing to say. Warns of folders that cannot be read, in which everyone may write (skipped), and of
/// folders inside custom_fusion_passes (skipped).
FoundLibraries find_libraries(const std::vector<std::string>& folders);

struct PassSources {
  std::vector<std::string> folders;  ///< searched with find_libraries
  std::vector<std::string> named;    ///< loaded behind those found
  bool switched_off = false;         ///< by the user: nothing is searched, and what is named is an error
  bool privileged = false;           ///< the program has rights that its caller has not: likewise
  bool strict = false;               ///< warnings are errors
  LibraryRules rules;
  std::size_t max_libraries = 64;
  std::uint64_t max_total_bytes = 522'752'000;
};

struct LibraryReport {
  std::string path;
  bool named = false;
  std::vector<std::string> passes;  ///< labels of those that run, in order
  std::optional<Error> error;       ///< why it is not loaded
};

struct LoadedPasses {
  std::vector<StreamPass> passes;
  std::vector<LibraryReport> libraries;
  std::vector<Error> warnings;  ///< with the errors of those found that could not be loaded
};

/// A library that was found and cannot be loaded is skipped; one that was named is an error. Errors: pass_library.
Result<LoadedPasses> load_passes(const PassSources& sources);

}  // namespace millstream
