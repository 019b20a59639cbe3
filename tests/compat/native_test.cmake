# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=.. -DSOURCE=.. -DWORK=.. -DCXX=.. -DFLAGS=.. -P: installs the native runtime alone, builds examples/runtime
# against it, and runs the example on each back-end.
include(${CMAKE_CURRENT_LIST_DIR}/installed.cmake)
build_against(runtime ${SOURCE} "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror ${FLAGS}")
foreach(device cpu sim)
  run(${WORK}/build/record_model ${device})
  if(NOT out STREQUAL "x 1000, y 2000, total 1501500\n")
    message(FATAL_ERROR "record_model ${device} printed\n${out}")
  endif()
  file(STRINGS ${WORK}/record_model.csv rows)
  list(LENGTH rows count)
  file(READ ${WORK}/record_model.json trace)
  string(JSON events LENGTH "${trace}" traceEvents)
  # One execution: its 4 kernels; beside them 2 records, 2 waits with an arrow of two ends each, and the execution itself.
  string(REGEX MATCHALL "\"ph\":\"X\"" spans "${trace}")
  list(LENGTH spans tasks)
  if(NOT count EQUAL 5 OR NOT tasks EQUAL 9)
    message(FATAL_ERROR "on ${device} ${count} rows of an op_summary, ${tasks} of ${events} events are tasks\n${trace}")
  endif()
endforeach()
