// SPDX-License-Identifier: Apache-2.0
#include "millstream/import/tensor_data.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "millstream/import/wire.h"

namespace millstream::onnx_file {
namespace {

namespace fs = std::filesystem;
using wire::Field;
using wire::Fields;
using wire::Type;
using wire::Varints;

/// How TensorProto keeps elements of a type when it does not use raw_data.
struct Storage {
  std::uint32_t field;     // float_data 4, int32_data 5, int64_data 7, double_data 10, uint64_data 11
  std::size_t entry_size;  // bytes of an entry in the tensor: an element, or two 4-bit ones
  std::size_t per_element; // entries an element: 2 for complex, else 1
};

std::optional<Storage> storage_of(DType t) {
  switch (t) {
    case DType::f32: return Storage{4, 4, 1};
    case DType::c64: return Storage{4, 4, 2};
    case DType::f64: return Storage{10, 8, 1};
    case DType::c128: return Storage{10, 8, 2};
    case DType::i64: return Storage{7, 8, 1};
    case DType::u64: return Storage{11, 8, 1};
    case DType::u32: return Storage{11, 4, 1};
    case DType::i32: return Storage{5, 4, 1};
    case DType::u16:
    case DType::i16:
    case DType::f16:
    case DType::bf16: return Storage{5, 2, 1};
    case DType::u8:
    case DType::i8:
    case DType::boolean:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::u4:
    case DType::i4:
    case DType::f4e2m1: return Storage{5, 1, 1};
    default: return std::nullopt;
  }
}

/// Entries that one field adds; nullopt when its wire type does not fit.
std::optional<std::size_t> entries_in(const Field& f, const Storage& s) {
  if (s.field == 4 || s.field == 10) {
    const std::size_t size = s.field == 4 ? 4 : 8;
    if (f.type == (size == 4 ? Type::fixed32 : Type::fixed64)) return 1;
    if (f.type != Type::bytes || f.bytes.size() % size != 0) return std::nullopt;
    return f.bytes.size() / size;
  }
  if (f.type == Type::varint) return 1;
  if (f.type != Type::bytes) return std::nullopt;
  return Varints::count(f.bytes);
}

Error bad(std::string_view what, std::string text) {
  return Error{ErrorCode::bad_model, fmt::format("{}: {}", what, text)};
}

Result<Tensor> read_typed(const TensorMessage& message, std::string_view what, DType dtype, std::uint64_t elements) {
  const auto storage = storage_of(dtype);
  if (!storage) return bad(what, fmt::format("element type {} needs raw_data", dtype_name(dtype)));
  const std::uint64_t wanted = dtype_bits(dtype) == 4 ? (elements + 1) / 2 : elements * storage->per_element;
  std::uint64_t there = 0;
  Fields counted(message.message);
  while (const auto f = counted.next()) {
    if (f->number != storage->field) continue;
    const auto n = entries_in(*f, *storage);
    if (!n) return malformed(what);
    there += *n;
  }
  if (there != wanted) return bad(what, fmt::format("holds {} data entries, its shape needs {}", there, wanted));

  Tensor out(dtype, message.dims);
  std::byte* to = out.mutable_bytes();
  const std::size_t size = storage->entry_size;
  const auto put = [&](std::uint64_t bits) {
    if (dtype == DType::boolean) bits = bits != 0;
    std::memcpy(to, &bits, size);  // little-endian: the low bytes
    to += size;
  };
  Fields fields(message.message);
  while (const auto f = fields.next()) {
    if (f->number != storage->field) continue;
    if (f->type != Type::bytes) {
      put(f->bits);
    } else if (storage->field == 4 || storage->field == 10) {
      if (!f->bytes.empty()) std::memcpy(to, f->bytes.data(), f->bytes.size());
      to += f->bytes.size();
    } else {
      Varints values(f->bytes);
      while (const auto v = values.next()) put(*v);
      if (values.malformed()) return malformed(what);
    }
  }
  return out;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<Tensor> TensorReader::read(const TensorMessage& message, std::string_view what) {
  if (message.data_type < 1 || message.data_type > static_cast<std::int64_t>(DType::i2)) {
    return bad(what, fmt::format("element type {} is unknown", message.data_type));
  }
  const auto dtype = static_cast<DType>(message.data_type);
  if (dtype == DType::string) {
    return Error{ErrorCode::unsupported_operator, fmt::format("{}: string tensors are not supported", what)};
  }
  if (message.segmented) return bad(what, "is given in segments, which is not supported");
  std::uint64_t elements = 1;
  for (const std::int64_t d : message.dims) {
    if (d < 0) return bad(what, fmt::format("dimension {} is negative", d));
  }
  for (const std::int64_t d : message.dims) {
    if (d == 0) elements = 0;
  }
  for (const std::int64_t d : message.dims) {
    if (elements == 0) break;
    if (elements > (std::uint64_t{1} << 56) / static_cast<std::uint64_t>(d)) {
      return Error{ErrorCode::memory_limit,
                   fmt::format("{}: {} elements or more are not representable", what, std::uint64_t{1} << 56)};
    }
    elements *= static_cast<std::uint64_t>(d);
  }
  const std::uint64_t bytes = dtype_bytes(dtype, elements);
  if (max_bytes_ && bytes > *max_bytes_) {
    return Error{ErrorCode::memory_limit, fmt::format("{}: takes {} bytes, allowed are {}", what, bytes, *max_bytes_)}
        .help("raise --max-memory");
  }
  if (message.external) return read_external(message, what, dtype, bytes);
  if (message.raw && !(message.raw->empty() && bytes != 0)) {
    if (message.raw->size() != bytes) {
      return bad(what, fmt::format("holds {} bytes of data, its shape needs {}", message.raw->size(), bytes));
    }
    Tensor out(dtype, message.dims);
    if (bytes != 0) std::memcpy(out.mutable_bytes(), message.raw->data(), message.raw->size());
    return out;
  }
  return read_typed(message, what, dtype, elements);
}

Result<Tensor> TensorReader::read_external(const TensorMessage& message, std::string_view what, DType dtype,
                                           std::uint64_t bytes) {
  std::string_view location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  for (const auto& [key, value] : message.external_data) {
    if (key == "location") location = value;
    if (key == "offset" || key == "length") {
      const auto n = parse_number(value);
      if (!n) return bad(what, fmt::format("its external data has the {} \"{}\", which is no number", key, value));
      if (key == "offset") {
        offset = *n;
      } else {
        length = *n;
      }
    }
  }
  if (location.empty()) return bad(what, "its data is external, but no location is given");
  const auto refuse = [&](std::string_view why) {
    return bad(what, fmt::format("external data at \"{}\" is refused: {}", location, why))
        .help("external data must lie in the model's folder or below it");
  };
  if (folder_.empty()) return refuse("the model is not read from a folder");
  if (location.find('\0') != std::string_view::npos) return refuse("the path holds a zero byte");
  const fs::path relative{std::string(location)};
  if (relative.is_absolute()) return refuse("the path is absolute");
  for (const fs::path& part : relative) {
    if (part == "..") return refuse("the path leaves the folder through \"..\"");
  }
  std::error_code code;
  const fs::path root = fs::canonical(folder_, code);
  if (code) return refuse(code.message());
  const fs::path file = fs::canonical(root / relative, code);  // symlinks resolved
  if (code) return Error{ErrorCode::io, fmt::format("{}: cannot read external data \"{}\": {}", what, location, code.message())};
  const auto [root_end, file_at] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  if (root_end != root.end() || file_at == file.end()) return refuse("a symbolic link leads out of the folder");
  if (!fs::is_regular_file(file, code) || code) return refuse("it is not a regular file");
  const std::uint64_t size = fs::file_size(file, code);
  if (code) return Error{ErrorCode::io, fmt::format("{}: cannot read external data \"{}\": {}", what, location, code.message())};

  if (length && *length != bytes) {
    return bad(what, fmt::format("its external data is {} bytes long, its shape needs {}", *length, bytes));
  }
  if (offset > size || bytes > size - offset) {
    return bad(what, fmt::format("external data \"{}\" ends at byte {}, needed are bytes {} to {}", location, size, offset,
                                 offset + bytes));
  }
  if (files_.emplace(file.string(), size).second) file_bytes_ += size;
  read_bytes_ += bytes;
  // A small model could read one file a thousand times over; honest ones read each byte about once.
  if (read_bytes_ > (std::uint64_t{64} << 20) + 8 * file_bytes_) {
    return Error{ErrorCode::memory_limit,
                 fmt::format("{}: the model reads {} bytes from external files of {} bytes", what, read_bytes_, file_bytes_)};
  }
  Tensor out(dtype, message.dims);
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(reinterpret_cast<char*>(out.mutable_bytes()), static_cast<std::streamsize>(bytes));
  if (!in || static_cast<std::uint64_t>(in.gcount()) != bytes) {
    return Error{ErrorCode::io, fmt::format("{}: cannot read {} bytes of external data \"{}\"", what, bytes, location)};
  }
  return out;
}

}  // namespace millstream::onnx_file
