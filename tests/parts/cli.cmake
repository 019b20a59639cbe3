# SPDX-License-Identifier: Apache-2.0
mst_test(cli_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/cli_test.cpp DEPS import)
target_compile_definitions(cli_test PRIVATE MST_CLI="$<TARGET_FILE:millstream_cli>")
add_dependencies(cli_test millstream_cli)
mst_test(cli_answers_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/cli_answers_test.cpp ${CMAKE_CURRENT_LIST_DIR}/../../tools/millstream/error_page.cpp
         DEPS import LINK nlohmann_json::nlohmann_json READS_TREE)
target_compile_definitions(cli_answers_test PRIVATE MST_CLI="$<TARGET_FILE:millstream_cli>")
add_dependencies(cli_answers_test millstream_cli)
mst_test(file_bytes_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/file_bytes_test.cpp DEPS import)
mst_test(cli_plans_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/cli_plans_test.cpp LINK nlohmann_json::nlohmann_json)
target_compile_definitions(cli_plans_test PRIVATE MST_CLI="$<TARGET_FILE:millstream_cli>")
add_dependencies(cli_plans_test millstream_cli)
