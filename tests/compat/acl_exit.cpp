// SPDX-License-Identifier: Apache-2.0
// A static object whose destructor still makes calls, which fail: they give their numbers, and a message.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acl/acl.h"

namespace {

struct EndsWithTheProcess {
  ~EndsWithTheProcess() {
    const aclError error = aclrtResetDevice(7);
    if (error == 107002 && std::strcmp(aclGetRecentErrMsg(), "no context") == 0) return;
    std::printf("at exit: %d, \"%s\"\n", error, aclGetRecentErrMsg());
    std::fflush(stdout);
    std::_Exit(1);
  }
} late;

}  // namespace

int main() {
  // What the library keeps for errors is made after `late`, and would go before it.
  return aclrtResetDevice(5) == 107002 && std::strstr(aclGetRecentErrMsg(), "device 5 is not open") != nullptr ? 0 : 2;
}
