// SPDX-License-Identifier: Apache-2.0
#include <exe_graph/runtime/continuous_vector.h>

#include <cstdio>

int main() {
  gert::TypedContinuousVector<int> v(4);
  const bool larger = v.SetSize(5), fits = v.SetSize(2);
  v.MutableData()[1] = 7;
  std::printf("%zu %zu %d %d %d %d\n", v.GetCapacity(), v.GetSize(), larger, fits, v.GetData()[0], v.GetData()[1]);
}
