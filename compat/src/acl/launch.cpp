// SPDX-License-Identifier: Apache-2.0
// Kernels of millstream_launch.h.
#include <cstring>
#include <limits>
#include <string>
#include <unordered_map>

#include <fmt/format.h>

#include "compat/src/acl/call.h"
#include "millstream_launch.h"

namespace millstream::acl {
namespace {

thread_local std::uint32_t block_index = 0;
thread_local std::uint32_t block_count = 0;

// The argument block begins with the body; a launch counts its bytes in 32 bits.
constexpr std::size_t kMostArguments = std::numeric_limits<std::uint32_t>::max() - sizeof(mst_kernel_body);

Result<void> run_block(const KernelCall& call) {
  mst_kernel_body body = nullptr;
  std::memcpy(&body, call.arguments.data(), sizeof body);
  struct Inside {
    explicit Inside(const KernelCall& c) {
      block_index = c.block;
      block_count = c.blocks;
    }
    ~Inside() { block_index = block_count = 0; }
  } const inside(call);
  const int status = body(call.arguments.data() + sizeof body);
  if (status != 0) return Error{ErrorCode::kernel_failed, fmt::format("block {} returned {}", call.block, status)};
  return {};
}

// One for each name, for good: tasks refer to it.
const KernelFunction& function_named(const char* name) {
  struct Named {
    std::string name;
    KernelFunction function;
  };
  static std::mutex mutex;
  static auto* const all = new std::unordered_map<std::string, std::unique_ptr<Named>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Named>& entry = (*all)[name];
  if (!entry) {
    entry = std::make_unique<Named>();
    entry->name = name;
    entry->function = {entry->name, run_block, 1, 0};
  }
  return entry->function;
}

}  // namespace
}  // namespace millstream::acl

using namespace millstream;
using namespace millstream::acl;

aclError mst_launch(const char* name, mst_kernel_body body, uint32_t blocks, const void* arguments, size_t bytes, aclrtStream stream) {
  return run("mst_launch", [&]() -> Result<void> {
    MST_TRY_VOID(not_null({{name, "name"}, {reinterpret_cast<const void*>(body), "body"}}));
    if (bytes != 0) MST_TRY_VOID(not_null({{arguments, "arguments"}}));
    MST_TRY(const auto s, stream_here(stream));
    if (*name == '\0') return Error{ErrorCode::bad_value, "the kernel's name is empty"};
    if (blocks == 0) return Error{ErrorCode::bad_value, fmt::format("kernel \"{}\" with no blocks", name)};
    if (bytes > kMostArguments) {
      return Error{ErrorCode::bad_value, fmt::format("kernel \"{}\" with {} bytes of arguments", name, bytes)}.help(
          fmt::format("at most {}; pass a pointer to more", kMostArguments));
    }
    std::vector<std::byte> block(sizeof body + bytes);
    std::memcpy(block.data(), &body, sizeof body);
    if (bytes != 0) std::memcpy(block.data() + sizeof body, arguments, bytes);
    return s->launch(function_named(name), Grid{blocks}, block);
  });
}

uint32_t mst_block_index(void) { return block_index; }
uint32_t mst_block_count(void) { return block_count; }
