# SPDX-License-Identifier: Apache-2.0
mst_fuzzer(profile_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../profile_fuzz.cpp DEPS profile)
