// SPDX-License-Identifier: Apache-2.0
// The parts of the page, compiled in from the files in page/.
#pragma once

#include <string_view>

namespace millstream::report_page {

std::string_view html();    ///< with the marks @MST_REPORT_STYLE@, @MST_REPORT_DATA@ and @MST_REPORT_SCRIPT@
std::string_view style();
std::string_view script();

}  // namespace millstream::report_page
