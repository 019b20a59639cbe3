# SPDX-License-Identifier: Apache-2.0
mst_test(memory_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/memory_test.cpp DEPS memory)
mst_test(plan_file_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/plan_file_test.cpp DEPS memory)
mst_test(memory_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/memory_property_test.cpp DEPS memory)
mst_test(cpu_backend_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/cpu_backend_test.cpp DEPS schedule trace backend)
mst_test(loaded_plans_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/loaded_plans_test.cpp DEPS schedule backend)
mst_test(exec_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/exec_test.cpp DEPS memory exec)
mst_test(control_flow_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/control_flow_test.cpp DEPS memory exec)
mst_test(exec_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/exec_property_test.cpp DEPS memory exec)
