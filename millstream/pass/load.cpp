// SPDX-License-Identifier: Apache-2.0
#include "millstream/pass/load.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace millstream {
namespace {

class Loader {
 public:
  explicit Loader(const PassSources& sources) : sources_(sources) {}

  Result<void> add(const std::string& path, bool named) {
    LibraryReport report;
    report.path = path;
    report.named = named;
    Result<void> done = try_add(path, named, report);
    if (!done.ok()) {
      if (named || sources_.strict) return done;
      report.error = std::move(done).error();
      out_.warnings.push_back(*report.error);
      out_.warnings.back().note("it is skipped");
    }
    out_.libraries.push_back(std::move(report));
    return {};
  }

  Result<void> warn(Error warning) {
    if (sources_.strict) return warning;
    out_.warnings.push_back(std::move(warning));
    return {};
  }

  LoadedPasses take() { return std::move(out_); }

 private:
  Result<void> try_add(const std::string& path, bool named, LibraryReport& report) {
    if (seen_.size() >= sources_.max_libraries) {
      return Error{ErrorCode::pass_library, fmt::format("pass library \"{}\" is one too many: at most {} are loaded", path, sources_.max_libraries)};
    }
    MST_TRY(CheckedLibrary library, check_library(path, sources_.rules));
    report.path = library.path();
    if (const auto [at, fresh] = seen_.emplace(library.identity(), library.path()); !fresh) {
      if (named && at->second == library.path()) return {};
      return warn(Error{ErrorCode::pass_library, fmt::format("pass library \"{}\" is the same file as \"{}\": it is loaded once", library.path(), at->second)}.help(
          "remove one of the two"));
    }
    if (library.bytes() > sources_.max_total_bytes - bytes_) {
      return Error{ErrorCode::pass_library, fmt::format("pass library \"{}\" has {} bytes; with those before it that is more than {}", path, library.bytes(),
                                                        sources_.max_total_bytes)};
    }
    bytes_ += library.bytes();
    for (const Error& w : library.warnings()) MST_TRY_VOID(warn(w));
    MST_TRY(LoadedLibrary loaded, load_library(std::move(library)));
    for (Error& w : loaded.warnings) MST_TRY_VOID(warn(std::move(w)));
    for (StreamPass& pass : loaded.passes) {
      std::string& first = first_with_[pass.name];
      pass.label = pass.name;
      for (std::size_t n = 2; !labels_.insert(pass.label).second; ++n) pass.label = fmt::format("{}_{}", pass.name, n);
      if (!first.empty()) {
        MST_TRY_VOID(warn(Error{ErrorCode::pass_library, fmt::format("pass \"{}\" of \"{}\" has the name of one of \"{}\": both run, this one as \"{}\"", pass.name,
                                                                     pass.library, first, pass.label)}
                              .help("give one of them another name")));
      } else {
        first = pass.library;
      }
      report.passes.push_back(pass.label);
      out_.passes.push_back(std::move(pass));
    }
    return {};
  }

  const PassSources& sources_;
  LoadedPasses out_;
  std::uint64_t bytes_ = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> seen_;
  std::map<std::string, std::string> first_with_;  // by pass name: the library
  std::set<std::string> labels_;
};

}  // namespace

Result<LoadedPasses> load_passes(const PassSources& sources) {
  if (sources.switched_off || sources.privileged) {
    if (sources.named.empty()) return LoadedPasses{};
    return Error{ErrorCode::pass_library, fmt::format("pass library \"{}\" is not loaded: {}", sources.named.front(),
                                                      sources.switched_off ? "libraries are switched off (MILLSTREAM_DISABLE_PLUGINS)"
                                                                           : "this program has rights that its caller has not")};
  }
  Loader loader(sources);
  FoundLibraries found = find_libraries(sources.folders);
  for (Error& w : found.warnings) MST_TRY_VOID(loader.warn(std::move(w)));
  for (const std::string& path : found.paths) MST_TRY_VOID(loader.add(path, false));
  for (const std::string& path : sources.named) MST_TRY_VOID(loader.add(path, true));
  return loader.take();
}

}  // namespace millstream
