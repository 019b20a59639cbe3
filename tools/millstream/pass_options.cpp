// SPDX-License-Identifier: Apache-2.0
#include "tools/millstream/pass_options.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "millstream/pass/policy.h"

namespace millstream::cli {
namespace {

// An empty variable says nothing.
std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    if (end > at) out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// The first variable that is set decides; without one, the folder that this program is installed in.
std::vector<std::string> folders(std::vector<Error>& warnings) {
  std::vector<std::string> out;
  const auto add = [&](const char* name, const std::string& text, std::string_view below) {
    if (text.front() == '/') {
      out.push_back(text + std::string(below));
    } else {
      warnings.push_back(Error{ErrorCode::bad_option, fmt::format("{}: no passes are looked for in \"{}\"", name, text)}.help("write the whole path, from / on"));
    }
  };
  if (const std::string list = variable("MILLSTREAM_PASS_PATH"); !list.empty()) {
    for (const std::string& root : parts_of(list)) add("MILLSTREAM_PASS_PATH", root, "/opp");
  } else if (const std::string opp = variable("ASCEND_OPP_PATH"); !opp.empty()) {
    add("ASCEND_OPP_PATH", opp, "");
  } else if (const std::string root = variable("ASCEND_PATH"); !root.empty()) {
    add("ASCEND_PATH", root, "/opp");
  } else {
    std::error_code ec;
    namespace fs = std::filesystem;
    const fs::path installed = fs::read_symlink("/proc/self/exe", ec).parent_path().parent_path();
    // Where everyone may write, anyone could have made the folder.
    const bool open = (fs::status(installed, ec).permissions() & fs::perms::others_write) != fs::perms::none;
    if (!installed.empty() && !open) out.push_back((installed / "opp").string());
  }
  return out;
}

Result<std::vector<std::string>> allowed(const std::string& list) {
  std::vector<std::string> out;
  for (std::string entry : parts_of(list)) {
    const bool hex = entry.size() == 64 && std::all_of(entry.begin(), entry.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (!hex && entry.front() != '/') {
      return Error{ErrorCode::bad_option, fmt::format("MILLSTREAM_PASS_ALLOW: \"{}\" is neither a path from / on nor a SHA-256 sum", entry)}.help(
          "sha256sum LIB.so gives the sum");
    }
    if (hex) std::transform(entry.begin(), entry.end(), entry.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

void add_pass_options(CLI::App& app, PassArguments& arguments) {
  app.add_option("--pass", arguments.libraries, "LIB.so: a library with stream passes, behind those found (repeatable; docs/passes.md)")->allow_extra_args(false);
  app.add_option("--pass-policy", arguments.policy, "where a stream pass fails: fail (default), rollback (undo it and go on), strict (warnings fail too)");
}

Result<PassRequest> resolve_passes(const PassArguments& arguments) {
  PassRequest out;
  if (!arguments.policy.empty()) {
    MST_TRY(out.policy, pass_policy(arguments.policy, "--pass-policy"));
  }
  out.sources.strict = out.policy == PassPolicy::strict;
  out.sources.named = arguments.libraries;
  const std::string off = variable("MILLSTREAM_DISABLE_PLUGINS");
  out.sources.switched_off = !off.empty() && off != "0" && off != "false" && off != "off";
  out.sources.privileged = ::getauxval(AT_SECURE) != 0;
  if (out.sources.switched_off || out.sources.privileged) return out;
  out.sources.folders = folders(out.warnings);
  if (const std::string list = variable("MILLSTREAM_PASS_ALLOW"); !list.empty()) {
    MST_TRY(out.sources.rules.allowed, allowed(list));
  }
  return out;
}

Result<LoadedPasses> load_requested(const PassRequest& request) {
  MST_TRY(LoadedPasses loaded, load_passes(request.sources));
  loaded.warnings.insert(loaded.warnings.begin(), request.warnings.begin(), request.warnings.end());
  for (const LibraryReport& library : loaded.libraries) {
    if (library.error || library.passes.empty()) continue;
    complain(fmt::format("note: stream passes of \"{}\" are loaded: {}\n", library.path, fmt::join(library.passes, ", ")));
  }
  return loaded;
}

Json library_json(const LibraryReport& report) {
  return {{"path", report.path}, {"named", report.named}, {"passes", report.passes}, {"error", report.error ? error_json(*report.error) : Json(nullptr)}};
}

}  // namespace millstream::cli
