// SPDX-License-Identifier: Apache-2.0
// Which of the four formats a text is, by the fields that come first.
#include <new>

#include "millstream/dump/dump.h"
#include "millstream/dump/readers.h"

namespace millstream {
namespace {

using dump::Scanner;

// The first field of each format that no other has, at the top or in the graph.
Result<DumpKind> kind_of(std::string_view text, const std::string& file) {
  Scanner s(text, file);
  while (const auto f = s.field()) {
    if (*f == "ir_version" || *f == "producer_name" || *f == "opset_import") return DumpKind::ge_onnx;
    if (*f == "op" && s.at_message()) return DumpKind::torch_txt;
    if (*f == "node" && s.at_message()) return DumpKind::torch_pbtxt;
    if (*f == "graph" && s.at_message()) {
      if (!s.open()) break;
      while (const auto g = s.field()) {
        if (*g == "node") return DumpKind::ge_onnx;
        if (*g == "op") return DumpKind::ge_proto;
        s.skip();
      }
      if (!s.failed()) return DumpKind::ge_proto;  // no node at all: the two agree
      break;
    }
    s.skip();
  }
  if (s.failed()) return s.error();
  return Error{ErrorCode::syntax, "this is none of the graph dumps that are known"}
      .at(s.where(0))
      .help("known: ge_onnx (ir_version, graph { node }), ge_proto (graph { op }), and TorchAir's op { and node {");
}

}  // namespace

std::string_view to_string(DumpKind kind) {
  switch (kind) {
    case DumpKind::ge_onnx: return "ge_onnx";
    case DumpKind::ge_proto: return "ge_proto";
    case DumpKind::torch_txt: return "TorchAir txt";
    case DumpKind::torch_pbtxt: return "TorchAir pbtxt";
  }
  return "?";
}

bool is_dump(std::string_view text) {
  std::size_t i = 0;
  const auto blanks = [&] {
    while (i < text.size() && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n' || text[i] == '#')) {
      if (text[i] == '#') {
        while (i < text.size() && text[i] != '\n') ++i;
      } else {
        ++i;
      }
    }
  };
  blanks();
  const std::size_t begin = i;
  while (i < text.size() && ((text[i] >= 'a' && text[i] <= 'z') || text[i] == '_')) ++i;
  if (i == begin) return false;
  while (i < text.size() && (text[i] == ' ' || text[i] == '\t')) ++i;
  return i < text.size() && (text[i] == ':' || text[i] == '{' || text[i] == '<');
}

Result<Dump> dump::read(std::string_view text, const std::string& file, EmitsTask emits) {
  try {
    MST_TRY(const DumpKind kind, kind_of(text, file));
    Scanner scanner(text, file);
    Assembler assembler(scanner, emits);
    switch (kind) {
      case DumpKind::ge_onnx: read_onnx(scanner, assembler); break;
      case DumpKind::ge_proto: read_proto(scanner, assembler, false); break;
      case DumpKind::torch_txt: read_proto(scanner, assembler, true); break;
      case DumpKind::torch_pbtxt: read_torch_pbtxt(scanner, assembler); break;
    }
    return assembler.finish(kind);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory_limit, "out of memory while reading \"" + file + "\""};
  }
}

}  // namespace millstream
