# SPDX-License-Identifier: Apache-2.0
# cmake -DSOURCE=.. -DWORK=.. -DCOMPILERS=.. -DNM=.. -P: the headers for passes with each compiler, standard, layout of
# std::string and optimisation; no symbol of ours is one that g++ makes the same for all libraries of a process.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(include ${SOURCE}/compat/include)
foreach(compiler ${COMPILERS})
  # Standard, layout of std::string, optimisation.
  foreach(way "11 1 0" "14 0 0" "14 1 2" "17 1 0" "20 1 0" "20 0 2")
    string(REPLACE " " ";" way "${way}")
    list(GET way 0 standard)
    list(GET way 1 abi)
    list(GET way 2 level)
    execute_process(
      COMMAND ${compiler} -std=c++${standard} -O${level} -D_GLIBCXX_USE_CXX11_ABI=${abi} -Wall -Wextra -Wpedantic -Wshadow -Werror
              -Wl,-z,defs -fPIC -shared ${SOURCE}/tests/compat/pass/spellings.cpp ${SOURCE}/tests/compat/pass/more.cpp -I${include}
              -I${include}/register -o ${WORK}/lib.so
      RESULT_VARIABLE rc ERROR_VARIABLE err)
    if(NOT rc EQUAL 0)
      message(FATAL_ERROR "${compiler} ${way}\n${err}")
    endif()
    execute_process(COMMAND ${NM} -D --defined-only ${WORK}/lib.so OUTPUT_VARIABLE symbols)
    if(symbols MATCHES " u [^\n]*(ge|mst|Pass)")
      message(FATAL_ERROR "${compiler} ${way}: a symbol for all libraries: ${symbols}")
    endif()
    if(NOT symbols MATCHES " W mst_plugin_query_v1")
      message(FATAL_ERROR "${compiler} ${way}: no query: ${symbols}")
    endif()
  endforeach()
  # -fvisibility=hidden hides all but the query.
  execute_process(COMMAND ${compiler} -std=c++14 -fvisibility=hidden -fPIC -shared ${SOURCE}/tests/compat/pass/spellings.cpp
                          ${SOURCE}/tests/compat/pass/more.cpp -I${include} -I${include}/register -o ${WORK}/hidden.so RESULT_VARIABLE rc)
  execute_process(COMMAND ${NM} -D --defined-only ${WORK}/hidden.so OUTPUT_VARIABLE symbols)
  if(NOT rc EQUAL 0 OR NOT symbols MATCHES " W mst_plugin_query_v1" OR symbols MATCHES "Move")
    message(FATAL_ERROR "hidden: ${rc} ${symbols}")
  endif()
endforeach()
# The C interface alone, and that a graph cannot be edited.
list(GET COMPILERS 0 compiler)
file(WRITE ${WORK}/abi.c "#include <register/mst_pass_abi.h>\nint f(const mst_host_api *a) { return (int)a->major; }\n")
execute_process(COMMAND ${compiler} -x c -std=c99 -Wall -Wextra -pedantic-errors -Werror -c ${WORK}/abi.c -I${include} -o ${WORK}/abi.o RESULT_VARIABLE rc)
if(NOT rc EQUAL 0)
  message(FATAL_ERROR "mst_pass_abi.h is no C99")
endif()
file(WRITE ${WORK}/edit.cpp "#include <register/register_custom_pass.h>\nvoid f(const ge::ConstGraphPtr& g, ge::GNode& n) { g->RemoveNode(n); }\n")
execute_process(COMMAND ${compiler} -fsyntax-only ${WORK}/edit.cpp -I${include} RESULT_VARIABLE rc ERROR_QUIET)
if(rc EQUAL 0)
  message(FATAL_ERROR "a stream pass could edit its graph")
endif()
# Every header by itself, found from the root folder alone.
file(GLOB headers RELATIVE ${include} ${include}/register/*.h ${include}/graph/*.h ${include}/ge/*.h)
foreach(header ${headers})
  file(WRITE ${WORK}/one.cpp "#include <${header}>\n#include <${header}>\n")
  execute_process(COMMAND ${compiler} -std=c++17 -fsyntax-only -Wall -Wextra -Werror ${WORK}/one.cpp -I${include} RESULT_VARIABLE rc ERROR_VARIABLE err)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${header} does not stand alone\n${err}")
  endif()
endforeach()
