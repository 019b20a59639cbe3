# SPDX-License-Identifier: Apache-2.0
mst_test(schedule_split_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_split_test.cpp DEPS schedule)
mst_test(schedule_split_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/schedule_split_property_test.cpp DEPS schedule)
mst_test(schedule_event_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_event_test.cpp DEPS schedule)
mst_test(schedule_control_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/schedule_control_property_test.cpp DEPS schedule)
