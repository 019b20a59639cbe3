# SPDX-License-Identifier: Apache-2.0
mst_test(runtime_stream_test SOURCES conformance/runtime_stream_test.cpp DEPS runtime)
mst_test(runtime_edges_test SOURCES conformance/runtime_edges_test.cpp DEPS runtime)
