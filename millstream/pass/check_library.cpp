// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "millstream/pass/library.h"
#include "millstream/pass/sha256.h"

// What runs here, from the linker.
extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace millstream {
namespace {

std::string reason(int number) { return std::generic_category().message(number); }

Error refuse(const std::string& path, std::string_view why) {
  return Error{ErrorCode::pass_library, fmt::format("pass library \"{}\" {}", path, why)};
}

Result<void> check_folder(const std::string& path, const std::string& folder) {
  struct stat s {};
  if (::stat(folder.c_str(), &s) != 0) return refuse(path, fmt::format("lies in \"{}\", which cannot be looked at: {}", folder, reason(errno)));
  if ((s.st_mode & S_IWOTH) == 0) return {};
  return refuse(path, fmt::format("lies in \"{}\", where everyone may write", folder)).help(fmt::format("chmod o-w \"{}\"", folder));
}

Result<void> check_header(const std::string& path, int fd, std::uint64_t bytes) {
  ElfW(Ehdr) header;
  std::memset(&header, 0, sizeof header);
  const ssize_t got = ::pread(fd, &header, sizeof header, 0);
  if (got < EI_NIDENT || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return refuse(path, "is no shared library: it does not begin as an ELF file");
  if (header.e_ident[EI_CLASS] != __ehdr_start.e_ident[EI_CLASS] || header.e_ident[EI_DATA] != __ehdr_start.e_ident[EI_DATA] ||
      header.e_machine != __ehdr_start.e_machine) {
    return refuse(path, fmt::format("is for another machine: class {}, machine {}; this is class {}, machine {}", header.e_ident[EI_CLASS],
                                    header.e_machine, __ehdr_start.e_ident[EI_CLASS], __ehdr_start.e_machine))
        .help("build it for this machine");
  }
  if (got < static_cast<ssize_t>(sizeof header)) return refuse(path, "is no shared library: it ends inside its header");
  if (header.e_type != ET_DYN) return refuse(path, fmt::format("is no shared library but an ELF file of type {}", header.e_type)).help("link it with -shared");
  // The system's loader maps what the header tells of, and dies where the file ends before that.
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    const auto at = static_cast<off_t>(header.e_phoff + i * sizeof part);
    if (header.e_phentsize != sizeof part || ::pread(fd, &part, sizeof part, at) != static_cast<ssize_t>(sizeof part)) {
      return refuse(path, "is no shared library: its table of parts cannot be read");
    }
    if (part.p_type == PT_LOAD && (part.p_filesz > bytes || part.p_offset > bytes - part.p_filesz)) {
      return refuse(path, fmt::format("is cut short: it has {} bytes, and tells of {} from byte {} on", bytes, part.p_filesz, part.p_offset)).help("copy it again");
    }
  }
  return {};
}

Result<std::string> sum_of(const std::string& path, int fd, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got <= 0) return refuse(path, fmt::format("cannot be read: {}", got == 0 ? "it ends early" : reason(errno)));
    done += static_cast<std::size_t>(got);
  }
  return sha256(text);
}

}  // namespace

CheckedLibrary::~CheckedLibrary() {
  if (fd_ >= 0) ::close(fd_);
}

Result<CheckedLibrary> check_library(const std::string& path, const LibraryRules& rules) {
  namespace fs = std::filesystem;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (!real) {
    struct stat link {};
    const int why = errno;
    if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
      return refuse(path, fmt::format("is a link that leads nowhere: {}", reason(why))).help("remove the link, or put the library where it leads");
    }
    return refuse(path, fmt::format("cannot be found: {}", reason(why)));
  }
  std::error_code ec;
  CheckedLibrary out;
  out.path_ = fs::absolute(path, ec).lexically_normal().string();
  MST_TRY_VOID(check_folder(path, fs::path(out.path_).parent_path().string()));
  MST_TRY_VOID(check_folder(path, fs::path(real.get()).parent_path().string()));
  out.fd_ = ::open(real.get(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (out.fd_ < 0) return refuse(path, fmt::format("cannot be read: {}", reason(errno))).help("the user who compiles needs permission to read it");
  struct stat s {};
  if (::fstat(out.fd_, &s) != 0) return refuse(path, fmt::format("cannot be looked at: {}", reason(errno)));
  if (!S_ISREG(s.st_mode)) return refuse(path, "is no regular file");
  out.bytes_ = static_cast<std::uint64_t>(s.st_size);
  out.device_ = s.st_dev;
  out.inode_ = s.st_ino;
  if (out.bytes_ > rules.max_bytes) return refuse(path, fmt::format("has {} bytes, allowed are {}", out.bytes_, rules.max_bytes));
  if ((s.st_mode & S_IWOTH) != 0) return refuse(path, "can be written by everyone").help(fmt::format("chmod o-w \"{}\"", real.get()));
  MST_TRY_VOID(check_header(path, out.fd_, out.bytes_));
  if (rules.allowed) {
    MST_TRY(const std::string sum, sum_of(path, out.fd_, out.bytes_));
    const auto is_this = [&](const std::string& a) { return a == out.path_ || a == real.get() || a == sum; };
    if (std::none_of(rules.allowed->begin(), rules.allowed->end(), is_this)) {
      return refuse(path, "is not on the list of those that may be loaded").help(fmt::format("its SHA-256 is {}; MILLSTREAM_PASS_ALLOW is the list", sum));
    }
  }
  if (s.st_uid != 0 && s.st_uid != ::geteuid()) {
    out.warnings_.push_back(refuse(path, fmt::format("belongs to user {}, who is neither root nor the one who runs this (user {})", s.st_uid, ::geteuid()))
                                .help(fmt::format("chown {} \"{}\"", ::geteuid(), real.get())));
  }
  if ((s.st_mode & S_IWGRP) != 0) {
    out.warnings_.push_back(refuse(path, "can be written by its group").help(fmt::format("chmod g-w \"{}\"", real.get())));
  }
  return out;
}

}  // namespace millstream
