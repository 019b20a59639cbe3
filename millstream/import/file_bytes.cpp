// SPDX-License-Identifier: Apache-2.0
#include "millstream/import/file_bytes.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>

#include <fmt/format.h>

namespace millstream {
namespace {

struct Close {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Close>;

Error cannot(std::string_view verb, const std::string& path, std::string_view why) {
  return Error{ErrorCode::io, fmt::format("cannot {} \"{}\": {}", verb, path, why)};
}

}  // namespace

Result<std::string> read_bytes(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (code || !std::filesystem::exists(status)) {
    return cannot("read", path, code ? code.message() : "no such file");
  }
  // A pipe or a device could block for ever or never end.
  if (!std::filesystem::is_regular_file(status)) return cannot("read", path, "it is not a regular file");
  const auto size = std::filesystem::file_size(path, code);
  if (code) return cannot("read", path, code.message());
  const File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return cannot("read", path, std::generic_category().message(errno));
  std::string bytes;
  try {
    bytes.resize(size);
  } catch (const std::exception&) {
    return Error{ErrorCode::memory_limit, fmt::format("no memory for the {} bytes of \"{}\"", size, path)};
  }
  const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), file.get());
  if (got != bytes.size()) return cannot("read", path, fmt::format("it ends after {} of {} bytes", got, size));
  return bytes;
}

Result<void> write_bytes(const std::string& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return cannot("write", path, std::generic_category().message(errno));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written) return cannot("write", path, std::generic_category().message(errno));
  return {};
}

}  // namespace millstream
