# SPDX-License-Identifier: Apache-2.0
set(cases ${CMAKE_CURRENT_LIST_DIR}/../cases)
add_executable(cases_main ${CMAKE_CURRENT_LIST_DIR}/../cases_main.cpp ${cases}/check.cpp ${cases}/load.cpp ${cases}/options.cpp
               ${cases}/run_logical.cpp ${cases}/run_other.cpp ${cases}/run_split.cpp ${cases}/run_sync.cpp)
target_link_libraries(cases_main PRIVATE mst_compile mst_runtime nlohmann_json::nlohmann_json)
add_test(NAME cases COMMAND cases_main ${cases})

mst_test(compile_threads_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/compile_threads_test.cpp DEPS compile LINK Threads::Threads)
mst_test(stream_pools_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/stream_pools_test.cpp DEPS runtime)
