# SPDX-License-Identifier: Apache-2.0
mst_fuzzer(schedule_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../schedule_fuzz.cpp DEPS schedule)
