# SPDX-License-Identifier: Apache-2.0
set(compilers ${CMAKE_CXX_COMPILER})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_program(MST_CLANG NAMES clang++ clang++-14)
  if(MST_CLANG)
    list(APPEND compilers ${MST_CLANG})
  endif()
endif()
add_test(NAME pass_headers COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/pass_headers
         "-DCOMPILERS=${compilers}" -DNM=${CMAKE_NM} -P ${CMAKE_CURRENT_LIST_DIR}/../compat/pass_headers_test.cmake)
