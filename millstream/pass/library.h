// SPDX-License-Identifier: Apache-2.0
// One library with passes: the checks before its code may run, and what it registered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "millstream/pass/pass.h"

namespace millstream {

struct LibraryRules {
  std::uint64_t max_bytes = 209'100'800;
  /// Paths and SHA-256 sums (64 hexadecimal digits) of what may be loaded; without a value everything may.
  std::optional<std::vector<std::string>> allowed;
};

/// A library whose file is open and passed all checks. Nothing of it has run.
class CheckedLibrary {
 public:
  CheckedLibrary(CheckedLibrary&& other) noexcept : CheckedLibrary(other) { other.fd_ = -1; }
  CheckedLibrary& operator=(CheckedLibrary&&) = delete;
  ~CheckedLibrary();

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Device and inode: the same for two links to one file.
  std::pair<std::uint64_t, std::uint64_t> identity() const { return {device_, inode_}; }
  const std::vector<Error>& warnings() const { return warnings_; }

 private:
  friend Result<CheckedLibrary> check_library(const std::string& path, const LibraryRules& rules);
  friend Result<struct LoadedLibrary> load_library(CheckedLibrary library);
  CheckedLibrary() = default;
  CheckedLibrary(const CheckedLibrary&) = default;

  std::string path_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0, device_ = 0, inode_ = 0;
  std::vector<Error> warnings_;
};

struct LoadedLibrary {
  std::vector<StreamPass> passes;  ///< in the order of registration
  std::vector<Error> warnings;     ///< about what it registered and that does not run
};

/// A link is followed. Errors: pass_library for what is no regular file, cannot be read, is too large, is not a shared library
/// for this machine, lies where everyone may write, or is not allowed. Warns where others than root and the user who runs
/// this own the file, or its group may write it.
Result<CheckedLibrary> check_library(const std::string& path, const LibraryRules& rules);

/// Runs the library's constructors, and asks for its passes. The file that is loaded is the one that was checked, whatever has
/// its name by now. It stays loaded: the passes are its code. Errors: pass_library.
Result<LoadedLibrary> load_library(CheckedLibrary library);

}  // namespace millstream
