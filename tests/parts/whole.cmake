# SPDX-License-Identifier: Apache-2.0
mst_test(layering_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/layering_test.cpp READS_TREE)
mst_test(documents_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/documents_test.cpp DEPS compile READS_TREE)
mst_test(compile_warned_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/compile_warned_test.cpp DEPS compile)
