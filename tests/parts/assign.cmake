# SPDX-License-Identifier: Apache-2.0
mst_test(target_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/target_test.cpp DEPS graph target)
mst_test(assign_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/assign_test.cpp DEPS graph target assign)
mst_test(sim_trace_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/sim_trace_test.cpp DEPS graph target assign backend trace)
mst_test(assign_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/assign_property_test.cpp
         DEPS graph target assign backend trace)
mst_test(assign_pipeline_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/assign_pipeline_property_test.cpp
         DEPS graph target assign sync schedule backend trace)
mst_test(assign_chain_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/assign_chain_test.cpp DEPS graph target assign)
mst_test(clusters_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/clusters_property_test.cpp DEPS graph target assign)
