// SPDX-License-Identifier: Apache-2.0
// Types, attribute values and constants of millstream text.
#pragma once

#include "millstream/graph/attrs.h"
#include "millstream/graph/lexer.h"
#include "millstream/graph/tensor.h"

namespace millstream {

/// Reads at the lexer's place. Errors: syntax, with the place.
class DataParser {
 public:
  explicit DataParser(Lexer& lexer) : lex_(lexer) {}

  /// A number, "text", a [list], an empty ints[], floats[] or strings[], or a tensor.
  Result<Attr> attribute();
  /// TYPE[DIMS]; "?" for what is unknown, TYPE[...] for an unknown rank.
  Result<TensorDesc> desc();
  /// TYPE[DIMS] = [ numbers ] | hex "..." | fill(...)
  Result<Tensor> tensor();

 private:
  Result<Attr> attribute_list(const Token& open);
  Result<Tensor> filled_tensor(const TensorDesc& d, std::int64_t elements, const Token& type_token);
  Result<Tensor> hex_tensor(const TensorDesc& d);
  Result<Tensor> listed_tensor(const TensorDesc& d, std::int64_t elements, const Token& type_token);

  Lexer& lex_;
  std::int64_t filled_ = 0;  // numbers of all fills of the text
};

}  // namespace millstream
