// SPDX-License-Identifier: Apache-2.0
// dynamo_*.pbtxt of TorchAir: looks like a GraphDef of TensorFlow; every attribute is a text.
#include <charconv>

#include "millstream/dump/notes.h"
#include "millstream/dump/readers.h"

namespace millstream::dump {
namespace {

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && stop == text.data() + text.size() && !text.empty() ? std::optional(value) : std::nullopt;
}

class TorchReader {
 public:
  TorchReader(Scanner& scanner, Assembler& out) : s_(scanner), out_(out) {}

  void graph() {
    const std::uint32_t section = out_.open_section(0);
    while (const auto f = s_.field()) {
      if (*f != "node") {
        s_.skip();
        continue;
      }
      row_.clear();
      row_.place = s_.offset();
      if (!s_.open()) return;
      node();
      if (!s_.failed()) out_.add(section, row_);
    }
  }

 private:
  void node() {
    while (const auto f = s_.field()) {
      if (*f == "name") {
        row_.name = s_.string();
      } else if (*f == "op") {
        row_.type = s_.string();
      } else if (*f == "input") {
        const std::string_view text = s_.string();
        if (!text.empty() && text[0] == '^') {
          row_.inputs.push_back(std::string(text.substr(1)) + ":-1");
        } else {
          row_.inputs.emplace_back(text);
        }
      } else if (*f == "attr" && s_.at_message()) {
        if (!s_.open()) return;
        attr();
      } else {
        s_.skip();
      }
    }
  }

  void attr() {
    std::string key, value;
    while (const auto f = s_.field()) {
      if (*f == "key") {
        key = s_.string();
      } else if (*f == "value" && s_.at_message()) {
        if (!s_.open()) return;
        while (const auto g = s_.field()) {
          if (*g == "s") {
            value = s_.string();
          } else {
            s_.skip();
          }
        }
      } else {
        s_.skip();
      }
    }
    if (key == "stream_id") {
      row_.stream = whole(value);
    } else if (key == "id") {
      row_.id = whole(value);
    } else if (key.compare(0, 3, "[o]") == 0) {
      row_.output_descs.push_back({});  // its text has no fixed form: only that there is an output counts
    } else if (key.compare(0, 3, "[i]") != 0 && key.compare(0, 11, "_millstream") != 0) {
      row_.attrs.push_back({std::move(key), std::move(value)});
    }
  }

  Scanner& s_;
  Assembler& out_;
  NodeRow row_;
};

}  // namespace

void read_torch_pbtxt(Scanner& scanner, Assembler& out) { TorchReader(scanner, out).graph(); }

}  // namespace millstream::dump
