# SPDX-License-Identifier: Apache-2.0
mst_fuzzer(target_toml_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../target_toml_fuzz.cpp DEPS target)
