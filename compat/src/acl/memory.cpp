// SPDX-License-Identifier: Apache-2.0
// Memory and copies of acl/acl_rt.h: all of it is the host's.
#include <cstring>
#include <limits>
#include <map>
#include <new>

#include <fmt/format.h>

#include "compat/src/acl/call.h"

namespace millstream::acl {
namespace {

constexpr std::align_val_t kAlignment{64};
// No object is larger. Near SIZE_MAX operator new rounds up to the alignment, and past the end.
constexpr std::size_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max();

struct Block {
  const rt::DeviceState* device;  ///< null: the host's
  std::size_t bytes;
};
struct Blocks {
  std::mutex mutex;
  std::map<void*, Block> live;
};
Blocks& blocks() {
  static auto* const all = new Blocks;
  return *all;
}

Result<void> allocate(void** out, std::size_t bytes, const rt::DeviceState* device) {
  if (bytes == 0) return Error{ErrorCode::bad_value, "0 bytes"};
  void* const made = bytes > kMostBytes ? nullptr : ::operator new(bytes, kAlignment, std::nothrow);
  if (made == nullptr) return Error{ErrorCode::no_memory, fmt::format("no memory for {} bytes", bytes)}.help("free some, or ask for less");
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  all.live.emplace(made, Block{device, bytes});
  *out = made;
  return {};
}

bool is_live(const void* block, bool of_device) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  const auto it = all.live.find(const_cast<void*>(block));
  return it != all.live.end() && (it->second.device != nullptr) == of_device;
}

Result<void> release(void* block, bool of_device, const char* name) {
  MST_TRY_VOID(not_null({{block, name}}));
  const auto unknown = [&] {
    return Error{ErrorCode::bad_handle, fmt::format("{} is no live block of {}", block, of_device ? "aclrtMalloc" : "aclrtMallocHost")}.help(
        "free what it returned, once");
  };
  if (!is_live(block, of_device)) return unknown();
  MST_TRY_VOID(current());
  Blocks& all = blocks();
  {
    const std::lock_guard lock(all.mutex);
    if (all.live.erase(block) == 0) return unknown();
  }
  ::operator delete(block, kAlignment);
  return {};
}

// Of memory that neither aclrtMalloc nor aclrtMallocHost made nothing is known.
Result<void> check_inside(const void* at, std::size_t count, const char* name) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  auto it = all.live.upper_bound(const_cast<void*>(at));
  if (it == all.live.begin()) return {};
  --it;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - static_cast<const std::byte*>(it->first));
  if (offset >= it->second.bytes || count <= it->second.bytes - offset) return {};
  return Error{ErrorCode::bad_value, fmt::format("{} bytes at offset {} of {} are too many: the block has {}", count, offset, name, it->second.bytes)}
      .help("at most what lies behind that place");
}

Result<void> check_copy(const void* dst, std::size_t room, const void* src, std::size_t count, int kind) {
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_DEVICE_TO_DEVICE) return Error{ErrorCode::bad_value, fmt::format("kind {}", kind)};
  if (count > room) return Error{ErrorCode::bad_value, fmt::format("{} bytes into a destination of {}", count, room)};
  MST_TRY_VOID(check_inside(dst, count, "dst"));
  return check_inside(src, count, "src");
}

Result<void> check_fill(const void* at, std::size_t room, std::size_t count) {
  if (count > room) return Error{ErrorCode::bad_value, fmt::format("{} bytes of a block of {}", count, room)};
  return check_inside(at, count, "devPtr");
}

}  // namespace

void free_memory_of(const rt::DeviceState* device) {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  for (auto it = all.live.begin(); it != all.live.end();) {
    if (it->second.device != device) {
      ++it;
      continue;
    }
    ::operator delete(it->first, kAlignment);
    it = all.live.erase(it);
  }
}

std::size_t live_blocks() {
  Blocks& all = blocks();
  const std::lock_guard lock(all.mutex);
  return all.live.size();
}

}  // namespace millstream::acl

using namespace millstream;
using namespace millstream::acl;

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  return run("aclrtMalloc", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{devPtr, "devPtr"}}));
    MST_TRY(const auto context, current());
    const int p = number_of(policy);
    if (p < ACL_MEM_MALLOC_HUGE_FIRST || p > ACL_MEM_MALLOC_NORMAL_ONLY) return Error{ErrorCode::bad_value, fmt::format("policy {}", p)};
    return allocate(devPtr, size, &context->native.state()->device);
  });
}

aclError aclrtFree(void* devPtr) {
  return run("aclrtFree", [&] { return release(devPtr, true, "devPtr"); });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return run("aclrtMallocHost", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{hostPtr, "hostPtr"}}));
    MST_TRY_VOID(current());
    return allocate(hostPtr, size, nullptr);
  });
}

aclError aclrtFreeHost(void* hostPtr) {
  return run("aclrtFreeHost", [&] { return release(hostPtr, false, "hostPtr"); });
}

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  return run("aclrtMemcpy", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{dst, "dst"}, {src, "src"}}));
    MST_TRY_VOID(current());
    MST_TRY_VOID(check_copy(dst, destMax, src, count, number_of(kind)));
    std::memmove(dst, src, count);
    return {};
  });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind, aclrtStream stream) {
  return run("aclrtMemcpyAsync", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{dst, "dst"}, {src, "src"}}));
    MST_TRY(const auto s, stream_here(stream));
    MST_TRY_VOID(check_copy(dst, destMax, src, count, number_of(kind)));
    return s->copy(dst, destMax, src, count, static_cast<CopyKind>(kind));
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return run("aclrtMemset", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{devPtr, "devPtr"}}));
    MST_TRY_VOID(current());
    MST_TRY_VOID(check_fill(devPtr, maxCount, count));
    std::memset(devPtr, value, count);
    return {};
  });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  return run("aclrtMemsetAsync", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{devPtr, "devPtr"}}));
    MST_TRY(const auto s, stream_here(stream));
    MST_TRY_VOID(check_fill(devPtr, maxCount, count));
    return s->fill(devPtr, maxCount, value, count);
  });
}
