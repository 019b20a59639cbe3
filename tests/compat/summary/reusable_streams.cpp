// SPDX-License-Identifier: Apache-2.0
#include <acl/acl.h>
#include <runtime/v1/graph/load/model_manager/reusable_stream_allocator.h>

#include <cstdio>

int main() {
  aclrtSetDevice(0);
  const std::unique_ptr<ge::ReusableStreamAllocator> pool(ge::ReusableStreamAllocator::Create());
  aclrtStream a = nullptr, b = nullptr, c = nullptr;
  const bool made = pool->GetOrCreateRtStream(a, 1, 0, 0) == ge::SUCCESS && pool->GetOrCreateRtStream(b, 1, 0, 0) == ge::SUCCESS &&
                    pool->GetOrCreateRtStream(c, 2, 0, 0) == ge::SUCCESS;
  std::printf("%d %d %d\n", made, a != b, c == a);
}
