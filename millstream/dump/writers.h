// SPDX-License-Identifier: Apache-2.0
// The printers of rows. `first` is the section printed; `whole` prints the subgraphs with it.
#pragma once

#include <string>

#include "millstream/dump/dump.h"
#include "millstream/dump/rows.h"
#include "millstream/dump/text_writer.h"

namespace millstream::dump {

std::string write_onnx(const Rows& rows, std::size_t first, bool whole, DumpDetail detail);
std::string write_proto(const Rows& rows, std::size_t first, bool whole, DumpDetail detail);

}  // namespace millstream::dump
