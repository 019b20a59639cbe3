# SPDX-License-Identifier: Apache-2.0
# What tests of an installed tree share; included. BUILD, SOURCE, WORK, CXX as in the including script, FLAGS may be empty.

# Runs a command in WORK; what it prints is in `out` and `err` afterwards.
function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nended with ${rc}\n${out}\n${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()

# Installs the component below WORK/tree and builds a copy of the project FROM against it in WORK/build.
function(build_against component from)
  file(REMOVE_RECURSE ${WORK})
  file(MAKE_DIRECTORY ${WORK})
  run(${CMAKE_COMMAND} --install ${BUILD} --component ${component} --prefix ${WORK}/tree)
  get_filename_component(name ${from} NAME)
  file(COPY ${from} DESTINATION ${WORK})
  run(${CMAKE_COMMAND} -S ${WORK}/${name} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/tree -DCMAKE_CXX_COMPILER=${CXX} ${ARGN})
  run(${CMAKE_COMMAND} --build ${WORK}/build)
endfunction()
