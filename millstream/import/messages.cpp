// SPDX-License-Identifier: Apache-2.0
#include "millstream/import/messages.h"

#include <cstring>

#include <fmt/format.h>

#include "millstream/import/wire.h"

namespace millstream::onnx_file {
namespace {

using wire::Field;
using wire::Fields;
using wire::Type;
using wire::Varints;

constexpr std::size_t kMaxRank = 64;
// An entry takes two bytes of the file and up to fifty of memory: lists longer than these are hostile.
constexpr std::size_t kMaxList = std::size_t{1} << 20;
constexpr std::size_t kMaxFunctions = std::size_t{1} << 16;

Error too_many(std::string_view what) {
  return Error{ErrorCode::bad_model, fmt::format("{}: more than are allowed", what)};
}

bool is_bytes(const Field& f) { return f.type == Type::bytes; }
bool is_varint(const Field& f) { return f.type == Type::varint; }

// Appends a repeated integer field, packed or not.
bool append_ints(const Field& f, std::vector<std::int64_t>& to) {
  if (is_varint(f)) {
    to.push_back(f.as_int());
    return to.size() <= kMaxList;
  }
  if (!is_bytes(f)) return false;
  const std::size_t n = Varints::count(f.bytes);
  if (n > kMaxList || to.size() + n > kMaxList) return false;
  to.reserve(to.size() + n);  // exactly: growth by doubling would cost the memory bound
  Varints values(f.bytes);
  while (const auto v = values.next()) to.push_back(static_cast<std::int64_t>(*v));
  return !values.malformed();
}

bool append_floats(const Field& f, std::vector<float>& to) {
  if (f.type == Type::fixed32) {
    to.push_back(f.as_float());
    return to.size() <= kMaxList;
  }
  if (!is_bytes(f) || f.bytes.size() % 4 != 0) return false;
  const std::size_t n = f.bytes.size() / 4;
  if (n == 0) return true;
  if (n > kMaxList || to.size() + n > kMaxList) return false;
  to.resize(to.size() + n);
  std::memcpy(to.data() + to.size() - n, f.bytes.data(), f.bytes.size());
  return true;
}

}  // namespace

Error malformed(std::string_view what) {
  return Error{ErrorCode::bad_model, fmt::format("{} is malformed: the file is truncated, or no ONNX model", what)};
}

namespace {

Result<OpsetMessage> read_opset(std::string_view bytes) {
  OpsetMessage out;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    if (f->number == 1 && is_bytes(*f)) out.domain = f->bytes;
    if (f->number == 2 && is_varint(*f)) out.version = f->as_int();
  }
  if (fields.malformed()) return malformed("an operator set import");
  return out;
}

}  // namespace

Result<ModelMessage> read_model(std::string_view bytes) {
  ModelMessage out;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    if (f->number == 1 && is_varint(*f)) out.ir_version = f->as_int();
    if (f->number == 7) {
      if (!is_bytes(*f)) return malformed("the model");
      if (out.graph) return Error{ErrorCode::bad_model, "the model holds two graphs"};
      out.graph = f->bytes;
    }
    if (f->number == 8) {
      if (!is_bytes(*f)) return malformed("the model");
      MST_TRY(const OpsetMessage opset, read_opset(f->bytes));
      if (out.opsets.size() >= kMaxFunctions) return too_many("operator set imports");
      out.opsets.push_back(opset);
    }
    if (f->number == 25) {
      if (!is_bytes(*f)) return malformed("the model");
      if (out.functions.size() >= kMaxFunctions) return too_many("functions");
      out.functions.push_back(f->bytes);
    }
  }
  if (fields.malformed()) return malformed("the model");
  return out;
}

Result<FunctionMessage> read_function(std::string_view bytes) {
  FunctionMessage out;
  out.message = bytes;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    if (!is_bytes(*f)) continue;
    switch (f->number) {
      case 1: out.name = f->bytes; break;
      case 4: out.inputs.push_back(f->bytes); break;
      case 5: out.outputs.push_back(f->bytes); break;
      case 6: out.attributes.push_back(f->bytes); break;
      case 9: {
        MST_TRY(const OpsetMessage opset, read_opset(f->bytes));
        out.opsets.push_back(opset);
        break;
      }
      case 10: out.domain = f->bytes; break;
      case 11: out.default_attributes.push_back(f->bytes); break;
      case 13: out.overload = f->bytes; break;
      default: break;
    }
  }
  if (fields.malformed()) return malformed(fmt::format("function \"{}\"", out.name));
  return out;
}

Result<NodeMessage> read_node(std::string_view bytes) {
  NodeMessage out;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    if (f->number < 9 && !is_bytes(*f)) return malformed("a node");
    if (out.inputs.size() + out.outputs.size() + out.attributes.size() > kMaxList) return too_many("a node's lists");
    switch (f->number) {
      case 1: out.inputs.push_back(f->bytes); break;
      case 2: out.outputs.push_back(f->bytes); break;
      case 3: out.name = f->bytes; break;
      case 4: out.op_type = f->bytes; break;
      case 5: out.attributes.push_back(f->bytes); break;
      case 7: out.domain = f->bytes; break;
      case 8: out.overload = f->bytes; break;
      default: break;
    }
  }
  if (fields.malformed()) return malformed(fmt::format("node \"{}\" of type {}", out.name, out.op_type));
  return out;
}

Result<AttributeMessage> read_attribute(std::string_view bytes) {
  AttributeMessage out;
  std::int64_t kind = 0;
  AttributeKind implied = AttributeKind::undefined;  // files older than the type field leave it out
  bool ok = true;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    switch (f->number) {
      case 1:
        ok = ok && is_bytes(*f);
        out.name = f->bytes;
        break;
      case 2:
        ok = ok && f->type == Type::fixed32;
        out.f = f->as_float();
        implied = AttributeKind::float_value;
        break;
      case 3:
        ok = ok && is_varint(*f);
        out.i = f->as_int();
        implied = AttributeKind::int_value;
        break;
      case 4:
        ok = ok && is_bytes(*f);
        out.s = f->bytes;
        implied = AttributeKind::string_value;
        break;
      case 5:
        ok = ok && is_bytes(*f);
        out.tensor = f->bytes;
        implied = AttributeKind::tensor;
        break;
      case 6:
        ok = ok && is_bytes(*f);
        out.graph = f->bytes;
        implied = AttributeKind::graph;
        break;
      case 7:
        ok = ok && append_floats(*f, out.floats);
        implied = AttributeKind::floats;
        break;
      case 8:
        ok = ok && append_ints(*f, out.ints);
        implied = AttributeKind::ints;
        break;
      case 9:
        ok = ok && is_bytes(*f) && out.strings.size() < kMaxList;
        if (ok) out.strings.push_back(f->bytes);
        implied = AttributeKind::strings;
        break;
      case 10: implied = AttributeKind::tensors; break;
      case 11: implied = AttributeKind::graphs; break;
      case 14: implied = AttributeKind::type_proto; break;
      case 15: implied = AttributeKind::type_protos; break;
      case 20:
        ok = ok && is_varint(*f);
        kind = f->as_int();
        break;
      case 21:
        ok = ok && is_bytes(*f);
        out.ref_name = f->bytes;
        break;
      case 22: implied = AttributeKind::sparse_tensor; break;
      case 23: implied = AttributeKind::sparse_tensors; break;
      default: break;
    }
  }
  if (fields.malformed() || !ok || kind < 0 || kind > 14) return malformed(fmt::format("attribute \"{}\"", out.name));
  out.kind = kind == 0 ? implied : static_cast<AttributeKind>(kind);
  return out;
}

Result<TensorMessage> read_tensor_message(std::string_view bytes) {
  TensorMessage out;
  out.message = bytes;
  bool ok = true;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    switch (f->number) {
      case 1:
        ok = ok && append_ints(*f, out.dims) && out.dims.size() <= kMaxRank;
        if (out.dims.size() > kMaxRank) out.dims.resize(kMaxRank);
        break;
      case 2:
        ok = ok && is_varint(*f);
        out.data_type = f->as_int();
        break;
      case 3: out.segmented = true; break;
      case 8:
        ok = ok && is_bytes(*f);
        out.name = f->bytes;
        break;
      case 9:
        ok = ok && is_bytes(*f);
        out.raw = f->bytes;
        break;
      case 13: {
        ok = ok && is_bytes(*f) && out.external_data.size() < 64;
        if (!ok) break;
        std::pair<std::string_view, std::string_view> entry;
        Fields pair(f->bytes);
        while (const auto p = pair.next()) {
          if (p->number == 1) entry.first = p->bytes;
          if (p->number == 2) entry.second = p->bytes;
        }
        ok = ok && !pair.malformed();
        out.external_data.push_back(entry);
        break;
      }
      case 14:
        ok = ok && is_varint(*f) && f->bits <= 1;
        out.external = f->bits == 1;
        break;
      default: break;
    }
  }
  if (fields.malformed() || !ok) return malformed(fmt::format("tensor \"{}\"", out.name));
  return out;
}

Result<ValueMessage> read_value(std::string_view bytes) {
  ValueMessage out;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    if (f->number == 1 && is_bytes(*f)) out.name = f->bytes;
    if (f->number == 2 && is_bytes(*f)) out.type = f->bytes;
  }
  if (fields.malformed()) return malformed(fmt::format("the description of value \"{}\"", out.name));
  return out;
}

namespace {

Result<TensorDesc> read_tensor_type(std::string_view bytes) {
  TensorDesc desc;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    if (f->number == 1 && is_varint(*f)) {
      if (f->bits > static_cast<std::uint64_t>(DType::i2)) {
        return Error{ErrorCode::bad_model, fmt::format("element type {} is unknown", f->as_int())};
      }
      desc.dtype = static_cast<DType>(f->bits);
    }
    if (f->number == 2 && is_bytes(*f)) {
      desc.shape.emplace();
      Fields shape(f->bytes);
      while (const auto d = shape.next()) {
        if (d->number != 1) continue;
        if (!is_bytes(*d)) return malformed("a shape");
        if (desc.shape->size() == kMaxRank) {
          return Error{ErrorCode::bad_model, fmt::format("a shape has more than {} dimensions", kMaxRank)};
        }
        Dim dim;
        Fields dimension(d->bytes);
        while (const auto v = dimension.next()) {
          // Some exporters write -1 for what they do not know.
          if (v->number == 1 && is_varint(*v)) dim = v->as_int() == -1 ? Dim{} : Dim::of(v->as_int());
          if (v->number == 2 && is_bytes(*v)) dim = Dim::named(std::string(v->bytes));
        }
        if (dimension.malformed()) return malformed("a dimension");
        if (dim.known() && *dim.value < 0) {
          return Error{ErrorCode::bad_model, fmt::format("dimension {} is negative", *dim.value)};
        }
        desc.shape->push_back(std::move(dim));
      }
      if (shape.malformed()) return malformed("a shape");
    }
  }
  if (fields.malformed()) return malformed("a tensor type");
  return desc;
}

}  // namespace

Result<TypeMessage> read_type(std::string_view bytes) {
  TypeMessage out;
  Fields fields(bytes);
  while (const auto f = fields.next()) {
    switch (f->number) {
      case 1: {
        if (!is_bytes(*f)) return malformed("a type");
        out.kind = "tensor";
        MST_TRY(out.desc, read_tensor_type(f->bytes));
        break;
      }
      case 4: out.kind = "sequence"; break;
      case 5: out.kind = "map"; break;
      case 7: out.kind = "opaque"; break;
      case 8: out.kind = "sparse tensor"; break;
      case 9: out.kind = "optional"; break;
      default: break;
    }
  }
  if (fields.malformed()) return malformed("a type");
  return out;
}

}  // namespace millstream::onnx_file
