# SPDX-License-Identifier: Apache-2.0
# Runs the onnx package's backend cases (tests/peers/conformance.py); not a ctest entry of its own.
add_executable(onnx_cases ${CMAKE_CURRENT_LIST_DIR}/../conformance/onnx_cases.cpp
                          ${CMAKE_CURRENT_LIST_DIR}/../conformance/run_graph.cpp)
target_link_libraries(onnx_cases PRIVATE mst_compile mst_import mst_exec nlohmann_json::nlohmann_json)
mst_test(kernels_basic_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/kernels_basic_test.cpp DEPS kernels)
