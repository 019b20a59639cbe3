# SPDX-License-Identifier: Apache-2.0
mst_test(target_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/target_test.cpp DEPS graph target)
