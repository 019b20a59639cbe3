# SPDX-License-Identifier: Apache-2.0
# Build settings every target shares, and the two functions that declare targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(MST_TESTS "Build the tests" ON)
option(MST_FUZZ "Build the fuzz targets (needs clang)" OFF)
set(MST_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, for example address,undefined")

find_program(MST_CCACHE ccache)
if(MST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MST_CCACHE})
endif()

add_library(mst_flags INTERFACE)
target_include_directories(mst_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(mst_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
if(MST_SANITIZE)
  target_compile_options(mst_flags INTERFACE -fsanitize=${MST_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(mst_flags INTERFACE -fsanitize=${MST_SANITIZE})
endif()
if(MST_FUZZ)
  target_compile_options(mst_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# mst_library(NAME SOURCES a.cpp ... [DEPS folder ...] [LINK target ...]): static library mst_NAME.
function(mst_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LINK" ${ARGN})
  add_library(mst_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(mst_${name} PUBLIC mst_flags fmt::fmt ${ARG_LINK})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(mst_${name} PUBLIC mst_${dep})
  endforeach()
endfunction()

# mst_test(NAME SOURCES a.cpp ... [DEPS folder ...] [LINK target ...] [ARGS ...] [READS_TREE]): GoogleTest program, one ctest
# entry. READS_TREE: it reads files of the source tree, at MST_SOURCE_DIR (and so is compiled anew in each clone).
function(mst_test name)
  cmake_parse_arguments(ARG "READS_TREE" "" "SOURCES;DEPS;LINK;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE mst_flags fmt::fmt GTest::gtest GTest::gtest_main ${ARG_LINK})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name} PRIVATE mst_${dep})
  endforeach()
  if(ARG_READS_TREE)
    target_compile_definitions(${name} PRIVATE MST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
endfunction()

# mst_fuzzer(NAME SOURCES ... DEPS ... [PARTS folder/file.cpp ...]): libFuzzer program; only with MST_FUZZ. PARTS: files below
# millstream/ that the parser needs, of libraries of which it does not need much.
function(mst_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LINK;PARTS" ${ARGN})
  list(TRANSFORM ARG_PARTS PREPEND ${PROJECT_SOURCE_DIR}/millstream/)
  add_executable(${name} ${ARG_SOURCES} ${ARG_PARTS})
  target_link_libraries(${name} PRIVATE mst_flags fmt::fmt ${ARG_LINK})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name} PRIVATE mst_${dep})
  endforeach()
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
