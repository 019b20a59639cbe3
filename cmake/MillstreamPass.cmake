# SPDX-License-Identifier: Apache-2.0
# millstream_add_pass(NAME a.cpp ...): libNAME.so, a library with stream passes that `millstream compile --pass` takes.
function(millstream_add_pass name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE millstream::pass)
  target_compile_features(${name} PRIVATE cxx_std_11)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden)
endfunction()
