# SPDX-License-Identifier: Apache-2.0
mst_fuzzer(dump_onnx_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../dump_fuzz.cpp DEPS dump_read)
target_compile_definitions(dump_onnx_fuzz PRIVATE "MST_DUMP_HEAD=\"ir_version: 6\\n\"")
mst_fuzzer(dump_proto_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../dump_fuzz.cpp DEPS dump_read)
target_compile_definitions(dump_proto_fuzz PRIVATE "MST_DUMP_HEAD=\"\"")
