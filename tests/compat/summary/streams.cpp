// SPDX-License-Identifier: Apache-2.0
#include <acl/acl.h>
#include <framework/runtime/stream_allocator.h>

#include <cstdio>

int main() {
  aclrtSetDevice(0);
  const gert::StreamAllocator allocator;
  const auto *streams = allocator.AcquireStreams(3);
  const rtStream_t first = streams->GetData()[0];
  std::printf("%zu ", streams->GetSize());
  std::printf("%d ", allocator.AcquireStreams(5) == streams);
  std::printf("%zu %d %d\n", streams->GetSize(), streams->GetData()[0] == first, allocator.AcquireStreams(2025) == nullptr);
}
