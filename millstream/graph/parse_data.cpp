// SPDX-License-Identifier: Apache-2.0
#include "millstream/graph/parse_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "millstream/graph/fill.h"

namespace millstream {
namespace {

constexpr std::int64_t kMaxFill = std::int64_t{1} << 28;  // a short text must not claim unbounded memory

bool is_float_text(const Token& t) {
  return t.text == "nan" || t.text == "inf" || t.text == "-inf" ||
         (t.kind == Token::Kind::number && t.text.find_first_of(".eE") != std::string_view::npos);
}

template <class T>
std::optional<std::vector<std::byte>> pack(const std::vector<Token>& items) {
  std::vector<std::byte> bytes(items.size() * sizeof(T));
  for (std::size_t i = 0; i < items.size(); ++i) {
    T value{};
    const std::string_view text = items[i].text;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof(T), bytes.data() + i * sizeof(T));
  }
  return bytes;
}

std::optional<std::vector<std::byte>> pack(DType type, const std::vector<Token>& items) {
  switch (type) {
    case DType::f32: return pack<float>(items);
    case DType::f64: return pack<double>(items);
    case DType::boolean:
    case DType::u8: return pack<std::uint8_t>(items);
    case DType::i8: return pack<std::int8_t>(items);
    case DType::u16: return pack<std::uint16_t>(items);
    case DType::i16: return pack<std::int16_t>(items);
    case DType::u32: return pack<std::uint32_t>(items);
    case DType::i32: return pack<std::int32_t>(items);
    case DType::u64: return pack<std::uint64_t>(items);
    case DType::i64: return pack<std::int64_t>(items);
    default: return std::nullopt;
  }
}

}  // namespace

Result<Attr> DataParser::attribute() {
  const Token token = lex_.peek();
  if (token.kind == Token::Kind::string) {
    MST_TRY_VOID(lex_.next());
    MST_TRY(std::string text, lex_.unescape(token));
    return Attr(std::move(text));
  }
  if (is_float_text(token)) {
    MST_TRY(const double x, lex_.expect_number("a value"));
    return Attr(static_cast<float>(x));
  }
  if (token.kind == Token::Kind::number) {
    MST_TRY(const std::int64_t x, lex_.expect_integer("a value"));
    return Attr(x);
  }
  if (lex_.at("[")) return attribute_list(token);
  if (lex_.at("ints") || lex_.at("floats") || lex_.at("strings")) {
    MST_TRY_VOID(lex_.next());
    MST_TRY_VOID(lex_.expect("["));
    MST_TRY_VOID(lex_.expect("]"));
    if (token.text == "ints") return Attr(std::vector<std::int64_t>());
    if (token.text == "floats") return Attr(std::vector<float>());
    return Attr(std::vector<std::string>());
  }
  if (token.kind == Token::Kind::word || lex_.at("?")) {
    MST_TRY(Tensor t, tensor());
    return Attr(std::move(t));
  }
  return lex_.error(token, "expected an attribute value: a number, \"text\", a [list], TYPE[DIMS] = DATA or body(NAME)");
}

Result<Attr> DataParser::attribute_list(const Token& open) {
  MST_TRY_VOID(lex_.expect("["));
  MST_TRY_VOID(lex_.skip_newlines());
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  while (!lex_.at("]")) {
    const Token token = lex_.peek();
    if (token.kind == Token::Kind::string) {
      MST_TRY_VOID(lex_.next());
      MST_TRY(std::string text, lex_.unescape(token));
      strings.push_back(std::move(text));
    } else if (is_float_text(token)) {
      MST_TRY(const double x, lex_.expect_number("a list item"));
      floats.push_back(static_cast<float>(x));
    } else {
      MST_TRY(const std::int64_t x, lex_.expect_integer("a list item"));
      ints.push_back(x);
    }
    MST_TRY_VOID(lex_.skip_newlines());
    if (lex_.at("]")) break;
    MST_TRY_VOID(lex_.expect(","));
    MST_TRY_VOID(lex_.skip_newlines());
  }
  MST_TRY_VOID(lex_.expect("]"));
  const int kinds = int{!ints.empty()} + int{!floats.empty()} + int{!strings.empty()};
  if (kinds == 0) return lex_.error(open, "an empty list needs its type: ints[], floats[] or strings[]");
  if (kinds > 1) return lex_.error(open, "a list holds integers, or floats (with a point), or texts; not a mix");
  if (!strings.empty()) return Attr(std::move(strings));
  if (!floats.empty()) return Attr(std::move(floats));
  return Attr(std::move(ints));
}

Result<TensorDesc> DataParser::desc() {
  const Token token = lex_.peek();
  TensorDesc d;
  if (lex_.at("?")) {
    MST_TRY_VOID(lex_.next());
  } else {
    MST_TRY(const std::string name, lex_.expect_name("an element type"));
    const auto type = dtype_from_name(name);
    if (!type) return lex_.error(token, fmt::format("unknown element type \"{}\"; for example f32, f16, i64, bool", name));
    d.dtype = *type;
  }
  MST_TRY_VOID(lex_.expect("["));
  if (lex_.peek().kind == Token::Kind::symbol || lex_.peek().text.substr(0, 1) == ".") {
    if (lex_.peek().text == "...") {
      MST_TRY_VOID(lex_.next());
      MST_TRY_VOID(lex_.expect("]"));
      return d;
    }
  }
  d.shape.emplace();
  while (!lex_.at("]")) {
    if (!d.shape->empty()) MST_TRY_VOID(lex_.expect(","));
    const Token dim = lex_.peek();
    if (lex_.at("?")) {
      MST_TRY_VOID(lex_.next());
      d.shape->push_back(Dim{});
    } else if (dim.kind == Token::Kind::number) {
      MST_TRY(const std::int64_t size, lex_.expect_integer("a dimension"));
      if (size < 0) return lex_.error(dim, "a dimension cannot be negative");
      d.shape->push_back(Dim::of(size));
    } else {
      MST_TRY(std::string symbol, lex_.expect_name("a dimension"));
      d.shape->push_back(Dim::named(std::move(symbol)));
    }
    if (d.shape->size() > 64) return lex_.error(dim, "more than 64 dimensions");
  }
  MST_TRY_VOID(lex_.expect("]"));
  return d;
}

// TYPE[DIMS] = [ numbers ] | hex "..." | fill(...)
Result<Tensor> DataParser::tensor() {
  const Token token = lex_.peek();
  MST_TRY(const TensorDesc d, desc());
  const auto elements = d.elements();
  if (!elements) return lex_.error(token, "a constant needs a type and a size for every dimension");
  if (dtype_bits(d.dtype) == 0) return lex_.error(token, fmt::format("constants of type {} are not supported", dtype_name(d.dtype)));
  MST_TRY_VOID(lex_.expect("="));
  // Allocation follows the data that is there, never a number that the text merely claims.
  if (lex_.at("hex")) {
    MST_TRY_VOID(lex_.next());
    return hex_tensor(d);
  }
  if (lex_.at("fill")) return filled_tensor(d, *elements, token);
  return listed_tensor(d, *elements, token);
}

// fill(seed=1, low=-1.0, high=1.0): seeded data that need not stand in the text.
Result<Tensor> DataParser::filled_tensor(const TensorDesc& d, std::int64_t elements, const Token& type_token) {
  MST_TRY_VOID(lex_.expect("fill"));
  MST_TRY_VOID(lex_.expect("("));
  std::int64_t seed = 0;
  double low = 0;
  double high = 1;
  while (!lex_.at(")")) {
    const Token token = lex_.peek();
    MST_TRY(const std::string key, lex_.expect_name("seed, low or high"));
    MST_TRY_VOID(lex_.expect("="));
    if (key == "seed") {
      MST_TRY(seed, lex_.expect_integer("the seed"));
    } else if (key == "low") {
      MST_TRY(low, lex_.expect_number("the low end"));
    } else if (key == "high") {
      MST_TRY(high, lex_.expect_number("the high end"));
    } else {
      return lex_.error(token, fmt::format("fill has no \"{}\"; it has seed, low and high", key));
    }
    if (!lex_.at(")")) MST_TRY_VOID(lex_.expect(","));
  }
  MST_TRY_VOID(lex_.expect(")"));
  if (d.dtype != DType::f32) return lex_.error(type_token, "fill makes f32 data");
  if (elements > kMaxFill - filled_) {
    return lex_.error(type_token, fmt::format("the fills of one text may hold {} numbers in all", kMaxFill));
  }
  filled_ += elements;
  if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high)) {
    return lex_.error(type_token, "a fill needs finite numbers low <= high");
  }
  return filled(d.dims(), static_cast<std::uint64_t>(seed), static_cast<float>(low), static_cast<float>(high));
}

Result<Tensor> DataParser::hex_tensor(const TensorDesc& d) {
  const Token token = lex_.peek();
  if (token.kind != Token::Kind::string) return lex_.error(token, "expected \"hexadecimal digits\"");
  MST_TRY_VOID(lex_.next());
  const std::uint64_t want = *d.bytes();
  if (token.text.size() % 2 != 0 || token.text.size() / 2 != want) {
    return lex_.error(token, fmt::format("{} needs {} bytes, the text holds {} digits (two a byte)", to_string(d), want, token.text.size()));
  }
  Tensor t(d.dtype, d.dims());
  std::byte* out = t.mutable_bytes();
  for (std::size_t i = 0; i < want; ++i) {
    unsigned byte = 0;
    const char* begin = token.text.data() + 2 * i;
    const auto [stop, code] = std::from_chars(begin, begin + 2, byte, 16);
    if (code != std::errc() || stop != begin + 2) return lex_.error(token, fmt::format("byte {} is not hexadecimal", i));
    out[i] = static_cast<std::byte>(byte);
  }
  return t;
}

Result<Tensor> DataParser::listed_tensor(const TensorDesc& d, std::int64_t elements, const Token& type_token) {
  MST_TRY_VOID(lex_.expect("["));
  MST_TRY_VOID(lex_.skip_newlines());
  std::vector<Token> items;
  while (!lex_.at("]")) {
    if (!items.empty()) {
      MST_TRY_VOID(lex_.expect(","));
      MST_TRY_VOID(lex_.skip_newlines());
    }
    MST_TRY(const Token item, lex_.next());
    if (item.kind != Token::Kind::number && item.text != "nan" && item.text != "inf") return lex_.error(item, "expected a number");
    items.push_back(item);
    MST_TRY_VOID(lex_.skip_newlines());
  }
  MST_TRY_VOID(lex_.expect("]"));
  if (static_cast<std::int64_t>(items.size()) != elements) {
    return lex_.error(type_token, fmt::format("{} needs {} numbers, the list holds {}", to_string(d), elements, items.size()));
  }
  const auto bytes = pack(d.dtype, items);
  if (!bytes) return lex_.error(type_token, fmt::format("a number does not fit {}, or the type needs hex \"...\"", dtype_name(d.dtype)));
  Tensor t(d.dtype, d.dims());
  std::copy(bytes->begin(), bytes->end(), t.mutable_bytes());
  return t;
}

}  // namespace millstream
