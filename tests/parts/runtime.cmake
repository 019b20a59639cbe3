# SPDX-License-Identifier: Apache-2.0
mst_test(runtime_stream_test SOURCES conformance/runtime_stream_test.cpp DEPS runtime)
mst_test(runtime_model_test SOURCES conformance/runtime_model_test.cpp DEPS runtime)
