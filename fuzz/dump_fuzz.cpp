// SPDX-License-Identifier: Apache-2.0
// Whatever the text, read_dump answers: with a sound graph that can be written and read again, or with an error that says
// where. Built twice: what is fed is wrapped so that each format is reached.
#include <cstdlib>
#include <string>
#include <string_view>

#include "millstream/dump/dump.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string text = std::string(MST_DUMP_HEAD) + std::string(bytes);
  const auto dump = millstream::read_dump(text, "fuzz");
  if (!dump.ok()) {
    if (dump.error().code == millstream::ErrorCode::internal || dump.error().message.empty() || !dump.error().where) std::abort();
    return 0;
  }
  if (!millstream::verify(dump->graph).empty()) std::abort();
  if (dump->schedule) (void)millstream::check(dump->graph, *dump->schedule, nullptr, {}, false);
  for (const auto format : {millstream::DumpFormat::onnx, millstream::DumpFormat::proto}) {
    const std::string again = millstream::write_dump(dump->graph, {}, format, millstream::DumpDetail::full);
    if (!millstream::read_dump(again, "again").ok()) std::abort();
  }
  return 0;
}
