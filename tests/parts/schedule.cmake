# SPDX-License-Identifier: Apache-2.0
mst_test(schedule_split_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_split_test.cpp DEPS schedule)
mst_test(schedule_split_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/schedule_split_property_test.cpp DEPS schedule)
mst_test(schedule_event_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_event_test.cpp DEPS schedule)
mst_test(schedule_control_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/schedule_control_property_test.cpp DEPS schedule)
if(TARGET ge_compiler)
  add_test(NAME compat_install COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${CMAKE_CURRENT_LIST_DIR}/../compat
           -DWORK=${CMAKE_CURRENT_BINARY_DIR}/compat_install -DTOOL=$<TARGET_FILE:millstream_cli> -DCXX=${CMAKE_CXX_COMPILER}
           -P ${CMAKE_CURRENT_LIST_DIR}/../compat/install_test.cmake)
endif()
mst_test(schedule_summary_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_summary_test.cpp DEPS schedule)
mst_test(schedule_activate_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/schedule_activate_test.cpp DEPS schedule)
