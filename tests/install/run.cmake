# Installs hlojit into an empty prefix, builds the project beside this file against it, runs that, and
# looks at what the library exports. Called by CTest:
#
#   cmake -DBUILD=<build tree> -DWORK=<scratch folder> -DCOMPILER=<c++> -DNM=<nm> -P run.cmake

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${out}${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
# Into a prefix that then moves, as packages do.
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/packed)
file(RENAME ${WORK}/packed ${WORK}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/example)
if(NOT out MATCHES "^2 4 6\ncaught: 2:[0-9]+: .*frobnicate")
  message(FATAL_ERROR "the example printed: ${out}")
endif()

# Of the headers of layout/, those are installed that the public one needs.
file(GLOB headers RELATIVE ${WORK}/prefix/include/hlojit/layout ${WORK}/prefix/include/hlojit/layout/*)
list(SORT headers)
if(NOT headers STREQUAL "dtype.h;error.h;export.h;shape.h")
  message(FATAL_ERROR "installed: ${headers}")
endif()

# Nothing but our own names may be visible: the library lives beside other LLVMs in one process.
file(GLOB library ${WORK}/prefix/lib*/libhlojit.so ${WORK}/prefix/lib/*/libhlojit.so)
run(${NM} --dynamic --defined-only --extern-only --format=posix ${library})
string(REGEX MATCHALL "[^\n]+" symbols "${out}")
list(FILTER symbols EXCLUDE REGEX "^_Z(T[ISV])?NK?6hlojit|^hlojit_")
if(symbols)
  list(LENGTH symbols count)
  list(SUBLIST symbols 0 20 first)
  list(JOIN first "\n  " first)
  message(FATAL_ERROR "libhlojit.so exports ${count} names that are not its own:\n  ${first}")
endif()
