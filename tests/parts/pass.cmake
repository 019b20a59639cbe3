# SPDX-License-Identifier: Apache-2.0
set(sanitize "")
if(MST_SANITIZE)
  set(sanitize -fsanitize=${MST_SANITIZE})
endif()
add_test(NAME pass_example COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}/examples/custom_pass
         -DWORK=${CMAKE_CURRENT_BINARY_DIR}/pass_example -DTOOL=$<TARGET_FILE:millstream_cli> -DCXX=${CMAKE_CXX_COMPILER}
         -DFLAGS=${sanitize} -P ${CMAKE_CURRENT_LIST_DIR}/../compat/pass_example_test.cmake)
set_tests_properties(pass_example PROPERTIES ENVIRONMENT "MILLSTREAM_PASS_PATH=;ASCEND_OPP_PATH=;ASCEND_PATH=")
set(compilers ${CMAKE_CXX_COMPILER})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_program(MST_CLANG NAMES clang++ clang++-14)
  if(MST_CLANG)
    list(APPEND compilers ${MST_CLANG})
  endif()
endif()
add_test(NAME pass_headers COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/pass_headers
         "-DCOMPILERS=${compilers}" -DNM=${CMAKE_NM} -P ${CMAKE_CURRENT_LIST_DIR}/../compat/pass_headers_test.cmake)

# Libraries that the tests load: MST_PASS_PLUGINS/NAME.so.
set(plugins ${CMAKE_CURRENT_BINARY_DIR}/pass_plugins)
function(pass_plugin name source)
  add_library(pass_plugin_${name} MODULE ${CMAKE_CURRENT_LIST_DIR}/../compat/pass/plugins/${source})
  target_link_libraries(pass_plugin_${name} PRIVATE pass)
  target_compile_definitions(pass_plugin_${name} PRIVATE ${ARGN})
  set_target_properties(pass_plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${plugins})
endfunction()
pass_plugin(first scripted.cpp PASS_NAME="first")
pass_plugin(second scripted.cpp PASS_NAME="second")
pass_plugin(other_version other_version.c)
pass_plugin(no_query no_query.c)
pass_plugin(unresolved unresolved.c)
pass_plugin(unfit unfit.cpp)

mst_test(pass_run_test SOURCES unit/pass_run_test.cpp DEPS pass LINK pass)
mst_test(pass_load_test SOURCES unit/pass_load_test.cpp DEPS pass)
mst_test(pass_property_test SOURCES property/pass_property_test.cpp DEPS compile)
mst_test(cli_passes_test SOURCES unit/cli_passes_test.cpp LINK nlohmann_json::nlohmann_json)
target_compile_definitions(cli_passes_test PRIVATE MST_CLI="$<TARGET_FILE:millstream_cli>")
add_dependencies(cli_passes_test millstream_cli)
foreach(test pass_load_test cli_passes_test)
  target_compile_definitions(${test} PRIVATE MST_PASS_PLUGINS="${plugins}")
  foreach(name first second other_version no_query unresolved unfit)
    add_dependencies(${test} pass_plugin_${name})
  endforeach()
endforeach()

# Every command of the guide prints what the guide says.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  add_test(NAME guide_custom_pass COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/../guide/run_guide.py
           ${PROJECT_SOURCE_DIR}/docs/guide_custom_pass.md --build ${CMAKE_BINARY_DIR} --work ${CMAKE_CURRENT_BINARY_DIR}/guide_custom_pass)
  set_tests_properties(guide_custom_pass PROPERTIES TIMEOUT 900 ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}")
endif()
