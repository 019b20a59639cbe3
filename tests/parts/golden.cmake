# SPDX-License-Identifier: Apache-2.0
add_executable(golden_main ${CMAKE_CURRENT_LIST_DIR}/../golden/golden_main.cpp)
target_link_libraries(golden_main PRIVATE mst_compile mst_exec mst_backend mst_runtime mst_trace)
add_test(NAME golden COMMAND golden_main ${CMAKE_CURRENT_LIST_DIR}/../golden)
