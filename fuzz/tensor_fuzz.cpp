// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes of a tensor file, read_tensor answers; what it reads, it writes and reads back the same.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "millstream/import/import.h"

namespace {

// In memory where there is such a folder: a file a run is what costs here.
std::string scratch() {
  const std::string folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  return folder + "/millstream_tensor_fuzz_" + std::to_string(getpid());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = scratch();
  // The first byte chooses how the file is named, which decides how it is read.
  if (size == 0) return 0;
  const std::string file = path + (data[0] % 2 == 0 ? ".npy" : ".pb");
  std::FILE* out = std::fopen(file.c_str(), "wb");
  if (out == nullptr) std::abort();
  std::fwrite(data + 1, 1, size - 1, out);
  std::fclose(out);
  const auto tensor = millstream::read_tensor(file);
  if (tensor.ok()) {
    const std::string copy = path + "_copy.pb";
    if (!millstream::write_tensor(copy, *tensor).ok()) std::abort();
    const auto again = millstream::read_tensor(copy);
    if (!again.ok() || !(*again == *tensor)) std::abort();
    std::remove(copy.c_str());
  } else if (tensor.error().message.empty()) {
    std::abort();
  }
  std::remove(file.c_str());
  return 0;
}
