# SPDX-License-Identifier: Apache-2.0
mst_test(dump_property_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/dump_property_test.cpp DEPS compile dump)
mst_test(dump_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/dump_test.cpp DEPS dump READS_TREE)
mst_test(dump_files_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/dump_files_test.cpp DEPS dump)
mst_test(cli_dump_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/cli_dump_test.cpp READS_TREE)
target_compile_definitions(cli_dump_test PRIVATE MST_CLI="$<TARGET_FILE:millstream_cli>")
add_dependencies(cli_dump_test millstream_cli)
mst_test(dump_mutation_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../property/dump_mutation_test.cpp DEPS compile dump)

find_path(MST_ONNX_PROTO_FOLDER onnx/onnx.proto)
if(MST_ONNX_PROTO_FOLDER AND Protobuf_PROTOC_EXECUTABLE)
  add_test(NAME dump_protoc_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/../dump/protoc_test.sh $<TARGET_FILE:millstream_cli>
           ${Protobuf_PROTOC_EXECUTABLE} ${MST_ONNX_PROTO_FOLDER} onnx/onnx.proto ${CMAKE_CURRENT_BINARY_DIR}/dump_protoc)
endif()
