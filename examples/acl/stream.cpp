// SPDX-License-Identifier: Apache-2.0
// A stream: a copy to the device, a kernel, a copy back. Destroying the stream waits for them.
#include <acl/acl.h>
#include <millstream_launch.h>

#include <cstdio>
#include <vector>

// Each block takes every 8th element.
void myKernel(const void *in, void *out, size_t size) {
  const float *from = static_cast<const float *>(in);
  float *to = static_cast<float *>(out);
  for (size_t i = mst_block_index(); i < size / sizeof(float); i += mst_block_count()) to[i] = from[i] * 2;
}

int main() {
  std::vector<float> host(16);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
  void *hostPtr = host.data(), *devPtr = nullptr;
  const size_t hostSize = host.size() * sizeof(float), devSize = hostSize;
  aclrtSetDevice(0);
  aclrtMalloc(&devPtr, devSize, ACL_MEM_MALLOC_HUGE_FIRST);

  aclrtStream stream;
  aclrtCreateStream(&stream);
  aclrtMemcpyAsync(devPtr, devSize, hostPtr, hostSize, ACL_MEMCPY_HOST_TO_DEVICE, stream);
  MST_LAUNCH(myKernel, 8, nullptr, stream)(devPtr, devPtr, devSize);
  aclrtMemcpyAsync(hostPtr, hostSize, devPtr, devSize, ACL_MEMCPY_DEVICE_TO_HOST, stream);
  // Waits for the copy back.
  aclrtDestroyStream(stream);

  for (const float x : host) std::printf("%g ", x);
  std::printf("\n");
  aclrtFree(devPtr);
  aclrtResetDevice(0);
}
