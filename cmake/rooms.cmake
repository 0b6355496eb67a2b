# A room of the project is a static library made of the .cc files below its folders. These helpers
# keep the CMakeLists to one line a room; a room that has no source yet is an interface library, so
# that the others configure and build.

# One set of precompiled standard headers for all targets (same flags everywhere, which is why the
# flags live in hlojit_flags), and a second one with the LLVM headers, which take 5 s to parse.
function(hlojit_precompiled_headers)
  if(NOT HLOJIT_PCH)
    return()
  endif()
  set(standard
    <algorithm> <array> <atomic> <bit> <cmath> <complex> <concepts> <cstddef> <cstdint> <cstring>
    <expected> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span>
    <stdexcept> <string> <string_view> <tuple> <type_traits> <unordered_map> <unordered_set>
    <utility> <variant> <vector>)
  set(llvm
    <llvm/IR/IRBuilder.h> <llvm/IR/Intrinsics.h> <llvm/IR/Module.h> <llvm/IR/Verifier.h>
    <llvm/ExecutionEngine/Orc/LLJIT.h> <llvm/Target/TargetMachine.h>)
  add_library(hlojit_pch OBJECT cmake/precompiled.cc)
  target_link_libraries(hlojit_pch PRIVATE hlojit_flags)
  target_precompile_headers(hlojit_pch PRIVATE ${standard})
  add_library(hlojit_pch_llvm OBJECT cmake/precompiled.cc)
  target_link_libraries(hlojit_pch_llvm PRIVATE hlojit_flags hlojit_llvm)
  target_precompile_headers(hlojit_pch_llvm PRIVATE ${standard} ${llvm})
endfunction()

# Flags and precompiled headers for a target of ours; `llvm` says whether it sees LLVM's headers.
function(hlojit_compile target llvm)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:hlojit_flags>)
  set(pch hlojit_pch)
  if(llvm)
    target_link_libraries(${target} PRIVATE hlojit_llvm)
    set(pch hlojit_pch_llvm)
  endif()
  if(HLOJIT_PCH)
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
endfunction()

# hlojit_sources(OUT [TREES folder...] [FILES glob...]): TREES are searched recursively.
function(hlojit_sources out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TREES;FILES")
  set(found "")
  foreach(tree IN LISTS arg_TREES)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${tree}/*.cc)
    list(APPEND found ${files})
  endforeach()
  foreach(pattern IN LISTS arg_FILES)
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${pattern})
    list(APPEND found ${files})
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# hlojit_room(NAME [LLVM] [TREES ...] [FILES ...] [LINKS target...])
function(hlojit_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LLVM" "" "TREES;FILES;LINKS")
  hlojit_sources(sources TREES ${arg_TREES} FILES ${arg_FILES})
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_LINKS})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  hlojit_compile(${name} ${arg_LLVM})
  target_link_libraries(${name} PUBLIC ${arg_LINKS})
  set_property(GLOBAL APPEND PROPERTY HLOJIT_ROOMS ${name})
endfunction()

# hlojit_for_isa(FLAGS file...): what is compiled for an instruction set of its own, chosen at run time.
function(hlojit_for_isa flags)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# hlojit_program(NAME [LLVM] [TREES ...] [FILES ...] [LINKS target...]): none without sources.
function(hlojit_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LLVM" "" "TREES;FILES;LINKS")
  hlojit_sources(sources TREES ${arg_TREES} FILES ${arg_FILES})
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  hlojit_compile(${name} ${arg_LLVM})
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
endfunction()

# libhlojit.so: the objects of all rooms, of which only what the public headers mark is visible, so
# that it lives beside another LLVM or TBB in one process. It is made when the runtime exists.
function(hlojit_user_library)
  get_property(rooms GLOBAL PROPERTY HLOJIT_ROOMS)
  if(NOT hlojit_runtime IN_LIST rooms)
    return()
  endif()
  add_library(hlojit SHARED)
  add_library(hlojit::hlojit ALIAS hlojit)
  foreach(room IN LISTS rooms)
    target_sources(hlojit PRIVATE $<TARGET_OBJECTS:${room}>)
  endforeach()
  set_target_properties(hlojit PROPERTIES
    LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_compile_features(hlojit INTERFACE cxx_std_20)
  # The public header stands on four of layout/, which know the standard library only.
  target_include_directories(hlojit INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(hlojit PRIVATE
    $<BUILD_INTERFACE:hlojit_flags> $<BUILD_INTERFACE:hlojit_llvm>
    $<BUILD_INTERFACE:TBB::tbb> $<BUILD_INTERFACE:fmt::fmt> $<BUILD_INTERFACE:Threads::Threads>)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(hlojit PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL
    -Wl,--version-script=${exports} $<$<CONFIG:Release>:-Wl,-z,defs>)
  set_property(TARGET hlojit APPEND PROPERTY LINK_DEPENDS ${exports})

  set(public dtype.h error.h export.h shape.h)
  install(TARGETS hlojit EXPORT hlojit-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/hlojit
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  install(FILES ${PROJECT_BINARY_DIR}/generated/hlojit/version.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hlojit)
  list(TRANSFORM public PREPEND ${PROJECT_SOURCE_DIR}/layout/)
  install(FILES ${public} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hlojit/layout)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hlojit)
  install(EXPORT hlojit-targets NAMESPACE hlojit:: DESTINATION ${package})
  configure_package_config_file(cmake/hlojit-config.cmake.in hlojit-config.cmake
    INSTALL_DESTINATION ${package})
  write_basic_package_version_file(hlojit-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/hlojit-config.cmake
                ${PROJECT_BINARY_DIR}/hlojit-config-version.cmake DESTINATION ${package})
endfunction()

# hlojit_pjrt.so, the PJRT plugin: one exported name before libhlojit.so, which it finds beside itself.
function(hlojit_pjrt_plugin)
  if(NOT TARGET hlojit)
    return()
  endif()
  add_library(hlojit_pjrt MODULE cmake/pjrt_plugin.cc)
  hlojit_compile(hlojit_pjrt "")
  target_link_libraries(hlojit_pjrt PRIVATE hlojit)
  set_target_properties(hlojit_pjrt PROPERTIES PREFIX "" INSTALL_RPATH "\$ORIGIN" BUILD_RPATH_USE_ORIGIN ON)
  target_link_options(hlojit_pjrt PRIVATE -Wl,--exclude-libs,ALL)
  install(TARGETS hlojit_pjrt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
