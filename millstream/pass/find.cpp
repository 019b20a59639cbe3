// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "millstream/pass/load.h"

namespace millstream {
namespace {

Error say(std::string message) { return Error{ErrorCode::pass_library, std::move(message)}; }

bool is_folder(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

// Names by their bytes, whatever the locale. Nothing for a folder that is not there, or is not to be trusted.
std::vector<std::string> names_in(const std::string& folder, std::vector<Error>& warnings) {
  struct stat s {};
  if (::stat(folder.c_str(), &s) != 0) {
    if (errno == EACCES) warnings.push_back(say(fmt::format("passes below \"{}\" are not looked for: {}", folder, std::generic_category().message(EACCES))));
    return {};
  }
  if (!S_ISDIR(s.st_mode)) return {};
  if ((s.st_mode & S_IWOTH) != 0) {
    warnings.push_back(say(fmt::format("passes below \"{}\" are not looked for: everyone may write there", folder)).help(fmt::format("chmod o-w \"{}\"", folder)));
    return {};
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), &::closedir);
  if (!dir) {
    warnings.push_back(say(fmt::format("passes below \"{}\" are not looked for: {}", folder, std::generic_category().message(errno))));
    return {};
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool ends_in_so(const std::string& name) { return name.size() > 3 && name.compare(name.size() - 3, 3, ".so") == 0; }

}  // namespace

FoundLibraries find_libraries(const std::vector<std::string>& folders) {
  FoundLibraries out;
  for (const std::string& folder : folders) {
    const std::string vendors = folder + "/vendors";
    for (const std::string& vendor : names_in(vendors, out.warnings)) {
      const std::string inner = vendors + "/" + vendor + "/custom_fusion_passes";
      if (!is_folder(inner)) continue;
      if (names_in(vendors + "/" + vendor, out.warnings).empty()) continue;
      std::string skipped;
      for (const std::string& name : names_in(inner, out.warnings)) {
        const std::string path = inner + "/" + name;
        if (is_folder(path)) {
          skipped += fmt::format("{}\"{}\"", skipped.empty() ? "" : ", ", name);
        } else if (ends_in_so(name)) {
          out.paths.push_back(path);
        }
      }
      if (!skipped.empty()) {
        out.warnings.push_back(say(fmt::format("\"{}\" holds folders, which are skipped: {}", inner, skipped)).help("put the libraries beside them"));
      }
    }
  }
  return out;
}

}  // namespace millstream
