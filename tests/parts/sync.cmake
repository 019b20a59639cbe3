# SPDX-License-Identifier: Apache-2.0
mst_test(sync_plan_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/sync_plan_test.cpp DEPS sync schedule)
mst_test(schedule_lower_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_lower_test.cpp DEPS schedule)
mst_test(schedule_check_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_check_test.cpp DEPS schedule)
mst_test(schedule_text_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_text_test.cpp DEPS schedule)
mst_test(sync_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/sync_property_test.cpp DEPS sync schedule)
mst_test(schedule_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/schedule_property_test.cpp DEPS schedule)
