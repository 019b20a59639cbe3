# SPDX-License-Identifier: Apache-2.0
mst_fuzzer(onnx_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../onnx_fuzz.cpp DEPS import)
mst_fuzzer(tensor_fuzz SOURCES ${CMAKE_CURRENT_LIST_DIR}/../tensor_fuzz.cpp DEPS import)
