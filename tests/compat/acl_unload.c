/* SPDX-License-Identifier: Apache-2.0 */
/* A program that opens a device in a library that it has loaded, and closes the library without a reset. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv) {
  const struct timespec moment = {0, 100000000};
  int round;
  for (round = 0; argc == 2 && round < 2; ++round) {
    void *const library = dlopen(argv[1], RTLD_NOW);
    int (*set)(int) = 0;
    if (library == 0) break;
    *(void **)&set = dlsym(library, "aclrtSetDevice");
    if (set == 0 || set(0) != 0 || dlclose(library) != 0) break;
    nanosleep(&moment, 0); /* the device's threads are still there */
  }
  if (round == 2) return 0;
  printf("round %d did not go through\n", round);
  return 1;
}
