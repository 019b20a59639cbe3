// SPDX-License-Identifier: Apache-2.0
// A host function between two kernels of a stream.
#include <acl/acl.h>
#include <millstream_launch.h>

#include <cstdio>
#include <vector>

void myHostCallback(void *args) {
  (void)args;
  // After myKernel1; myKernel2 waits. It must not call this interface.
  std::printf("In MyHostCallback.\n");
}

void myKernel1(const void *in, void *out, size_t size) {
  if (mst_block_index() == 0) std::printf("myKernel1\n");
  const float *from = static_cast<const float *>(in);
  float *to = static_cast<float *>(out);
  for (size_t i = mst_block_index(); i < size / sizeof(float); i += mst_block_count()) to[i] = from[i] + 1;
}
void myKernel2(const void *in, void *out, size_t size) {
  if (mst_block_index() == 0) std::printf("myKernel2\n");
  const float *from = static_cast<const float *>(in);
  float *to = static_cast<float *>(out);
  for (size_t i = mst_block_index(); i < size / sizeof(float); i += mst_block_count()) to[i] = from[i] * 10;
}

int main() {
  std::vector<float> host(16, 1);
  void *hostPtr = host.data(), *devPtrIn = nullptr, *devPtrOut = nullptr;
  const size_t size = host.size() * sizeof(float), hostSize = size;
  aclrtSetDevice(0);
  aclrtMalloc(&devPtrIn, size, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&devPtrOut, size, ACL_MEM_MALLOC_HUGE_FIRST);

  aclrtStream stream;
  aclrtCreateStream(&stream);
  aclrtMemcpyAsync(devPtrIn, size, hostPtr, hostSize, ACL_MEMCPY_HOST_TO_DEVICE, stream);
  MST_LAUNCH(myKernel1, 8, nullptr, stream)(devPtrIn, devPtrOut, size);
  aclrtLaunchHostFunc(stream, myHostCallback, nullptr);
  MST_LAUNCH(myKernel2, 8, nullptr, stream)(devPtrOut, devPtrOut, size);
  aclrtMemcpyAsync(hostPtr, hostSize, devPtrOut, size, ACL_MEMCPY_DEVICE_TO_HOST, stream);
  aclrtSynchronizeStream(stream);
  aclrtDestroyStream(stream);

  for (const float x : host) std::printf("%g ", x);
  std::printf("\n");
}
