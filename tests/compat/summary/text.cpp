// SPDX-License-Identifier: Apache-2.0
#include <graph/ascend_string.h>

#include <iostream>
#include <map>
#include <unordered_set>

int main() {
  const ge::AscendString none, null(static_cast<const char*>(nullptr)), a = "stream", part("streams", 6), b = std::string("a\0b", 3);
  const std::string back = a;
  std::map<ge::AscendString, int> ordered{{"b", 2}, {"a", 1}};
  std::unordered_set<ge::AscendString> hashed{a, part};
  std::cout << none.GetLength() << null.GetLength() << ' ' << a.GetString() << ' ' << (a == part) << (a != none) << (none < a) << ' '
            << b.GetLength() << ' ' << back << ' ' << ordered.begin()->first << ' ' << hashed.size() << '\n';
}
