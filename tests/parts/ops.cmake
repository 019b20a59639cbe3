# SPDX-License-Identifier: Apache-2.0
mst_test(ops_nn_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/ops_nn_test.cpp DEPS graph ops)
mst_test(ops_movement_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/ops_movement_test.cpp DEPS graph ops)
mst_test(ops_table_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/ops_table_test.cpp DEPS graph ops READS_TREE)
mst_test(ops_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/ops_property_test.cpp DEPS graph ops)
