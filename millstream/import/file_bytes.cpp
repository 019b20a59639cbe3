// SPDX-License-Identifier: Apache-2.0
#include "millstream/import/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

constexpr int kMaxAttempts = 1000;
constexpr int kMaxLinks = 40;

Error cannot(std::string_view verb, const std::string& path, std::string_view why) {
  return Error{ErrorCode::io, fmt::format("cannot {} \"{}\": {}", verb, path, why)};
}

std::string reason(int code) { return std::generic_category().message(code); }

// 0, or the errno.
int put(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

Result<void> write_in_place(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return cannot("write", path, reason(errno));
  int error = put(fd, bytes);
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error != 0) return cannot("write", path, reason(error));
  return {};
}

}  // namespace

Result<std::string> read_bytes(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (code || !std::filesystem::exists(status)) {
    return cannot("read", path, code ? code.message() : "no such file");
  }
  // A pipe or a device could block for ever or never end.
  if (std::filesystem::is_directory(status)) return cannot("read", path, "it is a folder");
  if (!std::filesystem::is_regular_file(status)) return cannot("read", path, "it is not a regular file");
  const auto size = std::filesystem::file_size(path, code);
  if (code) return cannot("read", path, code.message());
  const File file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return cannot("read", path, reason(errno));
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

Result<std::string> read_text(const std::string& path) {
  Result<std::string> text = read_bytes(path);
  if (text.ok() && (text->compare(0, 2, "\xff\xfe") == 0 || text->compare(0, 2, "\xfe\xff") == 0)) {
    return cannot("read", path, "it is text in UTF-16").help("save it as UTF-8");
  }
  if (text.ok() && text->compare(0, 3, "\xef\xbb\xbf") == 0) text->erase(0, 3);
  return text;
}

Result<void> write_bytes(const std::string& path, std::string_view bytes) {
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) return cannot("write", path, "it is a folder");
  if (exists && !S_ISREG(old.st_mode)) return write_in_place(path, bytes);
  if (exists && ::access(path.c_str(), W_OK) != 0) return cannot("write", path, reason(errno));
  std::error_code code;
  std::filesystem::path place(path);
  for (int links = 0; std::filesystem::is_symlink(place, code); ++links) {  // also one whose file is yet to be made
    const std::filesystem::path to = std::filesystem::read_symlink(place, code);
    if (code || links == kMaxLinks) return cannot("write", path, code ? code.message() : reason(ELOOP));
    place = place.parent_path() / to;  // an absolute `to` replaces it
  }
  std::string temporary;
  int fd = -1;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {  // never a file that somebody else has there
    temporary = fmt::format("{}.{}.{}.tmp", place.string(), static_cast<long>(::getpid()), attempt);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) break;
  }
  if (fd < 0) return cannot("write", path, reason(errno));
  int error = exists && ::fchmod(fd, old.st_mode & 07777) != 0 ? errno : 0;
  if (error == 0) error = put(fd, bytes);
  // The name must not come to the disk before the bytes.
  if (error == 0 && ::fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) error = errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), place.c_str()) != 0) error = errno;
  if (error == 0) return {};
  std::remove(temporary.c_str());
  return cannot("write", path, reason(error));
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code code;
  return std::filesystem::equivalent(a, b, code) && !code;
}

}  // namespace millstream
