# SPDX-License-Identifier: Apache-2.0
mst_test(kernels_conv_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/kernels_conv_test.cpp DEPS kernels)
mst_test(kernels_nn_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/kernels_nn_test.cpp DEPS kernels)
