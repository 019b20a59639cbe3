# SPDX-License-Identifier: Apache-2.0
mst_test(graph_flatten_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/graph_flatten_test.cpp DEPS graph)
