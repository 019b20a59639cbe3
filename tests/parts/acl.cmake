# SPDX-License-Identifier: Apache-2.0
mst_test(acl_test SOURCES compat/acl_test.cpp compat/acl_model_test.cpp LINK ascendcl)
add_library(acl_header OBJECT compat/acl_header.c)
set_target_properties(acl_header PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_compile_options(acl_header PRIVATE -Wall -Wextra -Werror -pedantic-errors)
target_link_libraries(acl_header PRIVATE ascendcl)
add_library(launch_header OBJECT compat/launch_header.cpp)
set_target_properties(launch_header PROPERTIES CXX_STANDARD 11 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
target_compile_options(launch_header PRIVATE -Wall -Wextra -Werror -pedantic-errors)
target_link_libraries(launch_header PRIVATE ascendcl)
mst_test(handle_table_test SOURCES compat/handle_table_test.cpp $<TARGET_OBJECTS:acl_header> LINK mst_acl)
set(sanitized "")
if(MST_SANITIZE)
  set(sanitized -fsanitize=${MST_SANITIZE})
endif()
add_test(NAME acl_examples COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}/examples/acl
         -DWORK=${CMAKE_CURRENT_BINARY_DIR}/acl_examples -DCXX=${CMAKE_CXX_COMPILER} -DFLAGS=${sanitized}
         -P ${CMAKE_CURRENT_LIST_DIR}/../compat/examples_test.cmake)
add_test(NAME native_example COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}/examples/runtime
         -DWORK=${CMAKE_CURRENT_BINARY_DIR}/native_example -DCXX=${CMAKE_CXX_COMPILER} -DFLAGS=${sanitized}
         -P ${CMAKE_CURRENT_LIST_DIR}/../compat/native_test.cmake)
add_executable(misuse compat/misuse.cpp)
target_link_libraries(misuse PRIVATE mst_acl)
foreach(device cpu sim)
  add_test(NAME misuse_${device} COMMAND ${CMAKE_COMMAND} -E env MILLSTREAM_DEVICE=${device} $<TARGET_FILE:misuse>)
endforeach()
add_test(NAME misuse_page COMMAND misuse --check ${PROJECT_SOURCE_DIR})
mst_test(stream_allocators_test SOURCES compat/stream_allocators_test.cpp LINK ge_runtime)
mst_test(acl_random_test SOURCES compat/acl_random_test.cpp LINK mst_acl)
