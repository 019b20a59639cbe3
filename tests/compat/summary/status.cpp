// SPDX-License-Identifier: Apache-2.0
#include <ge/ge_status.h>

#include <cstdio>

int main() {
  const ge::Status good = ge::SUCCESS, bad = ge::FAILED;
  std::printf("%u %u %zu\n", good, bad, sizeof(ge::Status));
}
