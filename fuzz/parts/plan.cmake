# SPDX-License-Identifier: Apache-2.0
mst_fuzzer(plan_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../plan_fuzz.cpp PARTS memory/plan_bytes.cpp memory/plan_file.cpp DEPS import)
