# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=.. -DSOURCE=.. -DWORK=.. -DCXX=.. -DFLAGS=.. -P: installs the native runtime alone, builds examples/runtime
# against it, and runs the example on each back-end.
function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nended with ${rc}\n${out}\n${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component runtime --prefix ${WORK}/tree)
file(COPY ${SOURCE}/ DESTINATION ${WORK}/examples)
run(${CMAKE_COMMAND} -S ${WORK}/examples -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/tree -DCMAKE_CXX_COMPILER=${CXX}
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror ${FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
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
