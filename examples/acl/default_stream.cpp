// SPDX-License-Identifier: Apache-2.0
// The default stream is a null pointer; it comes and goes with the device.
#include <acl/acl.h>
#include <millstream_launch.h>

#include <cstdio>
#include <vector>

void myKernel(const void *in, void *out, size_t size) {
  const float *from = static_cast<const float *>(in);
  float *to = static_cast<float *>(out);
  for (size_t i = mst_block_index(); i < size / sizeof(float); i += mst_block_count()) to[i] = from[i] + 1;
}

int main() {
  std::vector<float> host(16, 1);
  void *hostPtr = host.data(), *devPtrIn = nullptr, *devPtrOut = nullptr;
  const size_t size = host.size() * sizeof(float), hostSize = size;

  // Makes the default stream.
  aclrtSetDevice(0);
  aclrtMalloc(&devPtrIn, size, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&devPtrOut, size, ACL_MEM_MALLOC_HUGE_FIRST);

  aclrtMemcpyAsync(devPtrIn, size, hostPtr, hostSize, ACL_MEMCPY_HOST_TO_DEVICE, nullptr);
  MST_LAUNCH(myKernel, 8, nullptr, nullptr)(devPtrIn, devPtrOut, size);
  aclrtMemcpyAsync(hostPtr, hostSize, devPtrOut, size, ACL_MEMCPY_DEVICE_TO_HOST, nullptr);
  aclrtSynchronizeStream(nullptr);
  // Destroys the default stream, and the device's memory.
  aclrtResetDevice(0);

  for (const float x : host) std::printf("%g ", x);
  std::printf("\n");
}
