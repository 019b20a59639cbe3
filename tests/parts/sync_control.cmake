# SPDX-License-Identifier: Apache-2.0
mst_test(sync_control_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/sync_control_property_test.cpp DEPS sync)
mst_test(sync_activation_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/sync_activation_test.cpp DEPS sync)
