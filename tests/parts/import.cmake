# SPDX-License-Identifier: Apache-2.0
find_library(MST_ONNX_PROTO onnx_proto REQUIRED)
foreach(name import_onnx_test import_errors_test import_memory_test import_tensor_test)
  mst_test(${name} SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/${name}.cpp DEPS import
    LINK ${MST_ONNX_PROTO} protobuf::libprotobuf)
endforeach()
mst_test(infer_fold_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/infer_fold_test.cpp DEPS ops)
