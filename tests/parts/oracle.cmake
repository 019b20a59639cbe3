# SPDX-License-Identifier: Apache-2.0
mst_test(oracle_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/oracle_property_test.cpp DEPS schedule)
mst_test(chain_random_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/chain_random_property_test.cpp DEPS schedule memory compile)
mst_test(schedule_ranks_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_ranks_test.cpp DEPS schedule)
mst_test(schedule_interpret_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_interpret_test.cpp DEPS schedule)
