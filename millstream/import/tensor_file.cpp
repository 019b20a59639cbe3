// SPDX-License-Identifier: Apache-2.0
// Single tensors in files: TensorProto (.pb) and NumPy's .npy, format versions 1 to 3.
// Source of the latter: the public description of the NPY format.
#include <charconv>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "millstream/import/file_bytes.h"
#include "millstream/import/import.h"
#include "millstream/import/messages.h"
#include "millstream/import/tensor_data.h"

namespace millstream {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct NpyType {
  std::string_view code;
  DType dtype;
};
// Little-endian; one-byte types have no order.
constexpr NpyType kNpyTypes[] = {
    {"<f4", DType::f32}, {"<f8", DType::f64},     {"<f2", DType::f16}, {"<i8", DType::i64}, {"<i4", DType::i32},
    {"<i2", DType::i16}, {"|i1", DType::i8},      {"<u8", DType::u64}, {"<u4", DType::u32}, {"<u2", DType::u16},
    {"|u1", DType::u8},  {"|b1", DType::boolean}, {"<c8", DType::c64}, {"<c16", DType::c128},
};

Error bad(const std::string& path, std::string what) {
  return Error{ErrorCode::bad_model, fmt::format("\"{}\": {}", path, what)};
}

/// The header is a Python dictionary literal; this reads just the three values it must hold.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<std::string_view> string(std::string_view key) const {
    MST_TRY(const std::string_view at, after(key));
    if (at.empty() || (at[0] != '\'' && at[0] != '"')) return broken(key);
    const std::size_t end = at.find(at[0], 1);
    if (end == std::string_view::npos) return broken(key);
    return at.substr(1, end - 1);
  }
  Result<bool> boolean(std::string_view key) const {
    MST_TRY(const std::string_view at, after(key));
    if (at.substr(0, 4) == "True") return true;
    if (at.substr(0, 5) == "False") return false;
    return broken(key);
  }
  Result<std::vector<std::int64_t>> shape(std::string_view key) const {
    MST_TRY(std::string_view at, after(key));
    if (at.empty() || at[0] != '(') return broken(key);
    const std::size_t close = at.find(')');
    if (close == std::string_view::npos) return broken(key);
    at = at.substr(1, close - 1);
    std::vector<std::int64_t> dims;
    while (true) {
      while (!at.empty() && (at[0] == ' ' || at[0] == ',')) at.remove_prefix(1);
      if (at.empty()) return dims;
      std::int64_t d = 0;
      const auto [stop, code] = std::from_chars(at.data(), at.data() + at.size(), d);
      if (code != std::errc() || d < 0 || dims.size() == 64) return broken(key);
      at.remove_prefix(static_cast<std::size_t>(stop - at.data()));
      if (!at.empty() && at[0] == 'L') at.remove_prefix(1);  // Python 2 wrote long integers so
      if (!at.empty() && at[0] != ',' && at[0] != ' ') return broken(key);
      dims.push_back(d);
    }
  }

 private:
  Error broken(std::string_view key) const { return bad(path_, fmt::format("its header has no readable '{}'", key)); }
  Result<std::string_view> after(std::string_view key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = quote + std::string(key) + quote;
      std::size_t at = text_.find(quoted);
      if (at == std::string_view::npos) continue;
      at += quoted.size();
      while (at < text_.size() && (text_[at] == ' ' || text_[at] == ':')) ++at;
      return text_.substr(at);
    }
    return broken(key);
  }
  std::string_view text_;
  const std::string& path_;
};

/// Bytes of a tensor of these dimensions; nullopt when they do not fit 56 bits.
std::optional<std::uint64_t> size_of(DType dtype, const std::vector<std::int64_t>& dims) {
  return TensorDesc::of(dtype, dims).bytes();
}

Result<Tensor> read_npy(std::string_view bytes, const std::string& path) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) return bad(path, "is no .npy file");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<std::uint8_t>(bytes[i])); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) return bad(path, fmt::format("has .npy version {}, known are 1 to 3", version));
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix) return bad(path, "is truncated");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - prefix) return bad(path, "is truncated");
  const NpyHeader header(bytes.substr(prefix, length), path);
  MST_TRY(const std::string_view code, header.string("descr"));
  MST_TRY(const bool fortran, header.boolean("fortran_order"));
  MST_TRY(std::vector<std::int64_t> dims, header.shape("shape"));
  const std::string_view data = bytes.substr(prefix + length);
  for (const NpyType& type : kNpyTypes) {
    const bool native = type.code[0] == '<' && code.size() > 1 && code[0] == '=' && type.code.substr(1) == code.substr(1);
    if (type.code != code && !native) continue;
    if (fortran && dims.size() > 1) return bad(path, "is in Fortran order; save it with numpy.ascontiguousarray");
    const auto size = size_of(type.dtype, dims);
    if (!size || *size != data.size()) {
      return bad(path, fmt::format("holds {} bytes of data, its shape needs {}", data.size(),
                                   size ? fmt::format("{}", *size) : "more than can be addressed"));
    }
    Tensor out(type.dtype, std::move(dims));
    if (!data.empty()) std::memcpy(out.mutable_bytes(), data.data(), data.size());
    return out;
  }
  return bad(path, fmt::format("element type '{}' is not supported (little-endian numbers and bools are)", code));
}

Result<std::string> npy_bytes(const Tensor& tensor, const std::string& path) {
  for (const NpyType& type : kNpyTypes) {
    if (type.dtype != tensor.dtype()) continue;
    std::string shape;
    for (const std::int64_t d : tensor.shape()) shape += fmt::format("{}, ", d);
    if (tensor.shape().size() > 1) shape.resize(shape.size() - 2);
    if (tensor.shape().size() == 1) shape.resize(shape.size() - 1);  // "(3,)"
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type.code, shape);
    // Padded so that the data starts at a multiple of 64 bytes.
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    std::string out(kMagic);
    out += '\x01';
    out += '\0';
    out += static_cast<char>(header.size() & 0xff);
    out += static_cast<char>(header.size() >> 8);
    out += header;
    out.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
    return out;
  }
  return Error{ErrorCode::usage, fmt::format("cannot write \"{}\": .npy has no element type {}", path, dtype_name(tensor.dtype()))}
      .help("write a .pb file instead");
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

std::string pb_bytes(const Tensor& tensor) {
  std::string out;
  for (const std::int64_t d : tensor.shape()) {
    put_varint(out, 1 << 3);  // dims
    put_varint(out, static_cast<std::uint64_t>(d));
  }
  put_varint(out, 2 << 3);  // data_type
  put_varint(out, static_cast<std::uint64_t>(tensor.dtype()));
  put_varint(out, 9 << 3 | 2);  // raw_data
  put_varint(out, tensor.byte_size());
  out.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
  return out;
}

Result<Tensor> read_checked(const std::string& path) {
  MST_TRY(const std::string bytes, read_bytes(path));
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy" || std::string_view(bytes).substr(0, 6) == kMagic) return read_npy(bytes, path);
  if (bytes.empty()) return bad(path, "is empty");
  auto message = onnx_file::read_tensor_message(bytes);
  if (!message.ok()) return bad(path, "is no tensor file (.pb or .npy), or truncated");
  if (message->external) return bad(path, "keeps its data in another file, which is not supported");
  return onnx_file::TensorReader("", std::nullopt).read(*message, fmt::format("\"{}\"", path));
}

}  // namespace

Result<Tensor> read_tensor(const std::string& path) {
  try {
    return read_checked(path);
  } catch (const std::exception& e) {
    return Error{ErrorCode::io, fmt::format("\"{}\": {}", path, e.what())};
  }
}

Result<void> write_tensor(const std::string& path, const Tensor& tensor) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy") {
    MST_TRY(const std::string bytes, npy_bytes(tensor, path));
    return write_bytes(path, bytes);
  }
  if (extension == ".pb") return write_bytes(path, pb_bytes(tensor));
  return Error{ErrorCode::usage, fmt::format("cannot write \"{}\": tensors are written as .npy or .pb", path)};
}

}  // namespace millstream
