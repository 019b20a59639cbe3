# SPDX-License-Identifier: Apache-2.0
mst_test(runtime_stream_test SOURCES conformance/runtime_stream_test.cpp DEPS runtime)
mst_test(runtime_model_test SOURCES conformance/runtime_model_test.cpp DEPS runtime)
mst_test(runtime_model_rules_test SOURCES conformance/runtime_model_rules_test.cpp DEPS runtime)
mst_test(runtime_tape_test SOURCES conformance/runtime_tape_test.cpp DEPS runtime)
mst_test(runtime_execution_test SOURCES conformance/runtime_execution_test.cpp DEPS runtime)
mst_test(runtime_replay_test SOURCES conformance/runtime_replay_test.cpp DEPS runtime)
mst_test(runtime_edges_test SOURCES conformance/runtime_edges_test.cpp DEPS runtime)
mst_test(runtime_races_test SOURCES conformance/runtime_races_test.cpp DEPS runtime)
mst_test(runtime_hosts_test SOURCES conformance/runtime_hosts_test.cpp DEPS runtime)

add_library(runtime_trace STATIC EXCLUDE_FROM_ALL runtime_trace/checker.cpp runtime_trace/model_rules.cpp
            runtime_trace/random_parts.cpp runtime_trace/random_model.cpp runtime_trace/random_program.cpp)
target_link_libraries(runtime_trace PUBLIC mst_flags mst_runtime fmt::fmt)
mst_test(runtime_trace_test SOURCES runtime_trace/checker_test.cpp DEPS runtime LINK runtime_trace)
mst_test(runtime_programs_test SOURCES runtime_trace/random_program_test.cpp DEPS runtime LINK runtime_trace)
add_executable(runtime_chaos runtime_trace/chaos_main.cpp)
target_link_libraries(runtime_chaos PRIVATE mst_flags mst_runtime runtime_trace)
add_test(NAME runtime_chaos COMMAND runtime_chaos --seconds 20)
# The explorer's fibres are unknown to the thread sanitizer, and there is only one thread; the sanitizer's own operator new
# stands in front of the one that fails on demand.
if(NOT MST_SANITIZE MATCHES "thread")
  mst_test(interleave_test SOURCES interleave/interleave_test.cpp interleave/explorer.cpp DEPS core)
  mst_test(runtime_fault_test SOURCES conformance/runtime_fault_test.cpp DEPS runtime)
endif()
mst_test(runtime_reports_test SOURCES conformance/runtime_reports_test.cpp DEPS runtime)
mst_test(numbers_test SOURCES unit/numbers_test.cpp DEPS runtime)
mst_test(ready_set_test SOURCES unit/ready_set_test.cpp DEPS runtime)
mst_test(runtime_trace_export_test SOURCES unit/runtime_trace_export_test.cpp DEPS runtime LINK nlohmann_json::nlohmann_json)
