// SPDX-License-Identifier: Apache-2.0
// The readers of each format: they walk a text and hand its nodes over. Errors stay in the scanner.
#pragma once

#include <optional>
#include <string_view>

#include "millstream/dump/assemble.h"

namespace millstream::dump {

/// read_dump without the table of operators, which alone needs most of the library. Errors: as read_dump.
Result<Dump> read(std::string_view text, const std::string& file, EmitsTask emits);

void read_onnx(Scanner& scanner, Assembler& out);
/// A ModelDef, or the bare GraphDef that TorchAir writes.
void read_proto(Scanner& scanner, Assembler& out, bool bare_graph);
void read_torch_pbtxt(Scanner& scanner, Assembler& out);

/// None where the bytes are not those of the shape.
std::optional<Tensor> tensor_of(const DescRow& desc, std::string_view bytes);

}  // namespace millstream::dump
