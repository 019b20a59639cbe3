// SPDX-License-Identifier: Apache-2.0
// Pages printed from tables stay what the tables say.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "millstream/compile/compile.h"

namespace millstream {
namespace {

std::string file(const std::string& name) {
  std::ifstream in(std::string(MST_SOURCE_DIR) + "/docs/" + name);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Documents, TheOptionsPageIsPrintedFromTheTable) {
  EXPECT_EQ(file("options.md"), options_markdown()) << "run: millstream options --markdown > docs/options.md";
}

TEST(Documents, TheErrorPageHasEveryCode) {
  const std::string page = file("errors.md");
  for (const ErrorCodeInfo& row : error_code_table()) {
    EXPECT_NE(page.find("| " + std::string(row.number) + " | " + std::string(row.word) + " | " + std::to_string(row.exit_status) + " |"),
              std::string::npos)
        << row.number;
    EXPECT_EQ(&error_code_info(row.code), &row);  // the table is in enumeration order
  }
}

}  // namespace
}  // namespace millstream
