// SPDX-License-Identifier: Apache-2.0
#include "millstream/pass/foreign_code.h"

#include <utility>

namespace millstream {
namespace {

ForeignCodeWatch watch_of_all = nullptr;

}  // namespace

void watch_foreign_code(ForeignCodeWatch watch) { watch_of_all = watch; }

ForeignCodeScope::ForeignCodeScope(ErrorCode code, std::string what) : code_{code, std::move(what)} {
  if (watch_of_all != nullptr) watch_of_all(&code_);
}

ForeignCodeScope::~ForeignCodeScope() {
  if (watch_of_all != nullptr) watch_of_all(nullptr);
}

}  // namespace millstream
