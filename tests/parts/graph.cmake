# SPDX-License-Identifier: Apache-2.0
mst_test(graph_text_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/graph_text_test.cpp DEPS graph)
mst_test(graph_text_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/graph_text_property_test.cpp DEPS graph)
