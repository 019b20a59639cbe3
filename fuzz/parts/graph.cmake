# SPDX-License-Identifier: Apache-2.0
mst_fuzzer(graph_text_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../graph_text_fuzz.cpp DEPS graph)
