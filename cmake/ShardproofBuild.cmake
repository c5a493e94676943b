# How every target of the house is built: the language, the floating-point contract, warnings and
# the processor baseline. Numbers depend on the first block; nothing may turn it off.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
include(GNUInstallDirs)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(shardproof_arch "${SHARDPROOF_ARCH}")
if(shardproof_arch STREQUAL "" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(shardproof_arch x86-64-v3)
endif()
set(shardproof_baseline "${shardproof_arch}")
if(shardproof_arch STREQUAL "")
  set(shardproof_baseline "the default of its compiler")
endif()

add_library(shardproof_options INTERFACE)
# The specification fixes every rounding: no contraction of a*b+c, no flushing, no reassociation.
target_compile_options(shardproof_options INTERFACE -ffp-contract=off -fno-fast-math
                                                    -fno-unsafe-math-optimizations)
if(NOT shardproof_arch STREQUAL "")
  target_compile_options(shardproof_options INTERFACE -march=${shardproof_arch})
endif()
target_compile_options(shardproof_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                    -Wsign-conversion -Wno-unknown-pragmas)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in every std::string concatenation (GCC bug 105651).
  target_compile_options(shardproof_options INTERFACE -Wno-restrict)
endif()
if(SHARDPROOF_WERROR)
  target_compile_options(shardproof_options INTERFACE -Werror)
endif()
if(NOT SHARDPROOF_SANITIZE STREQUAL "")
  # The first finding ends the program: a test that only prints a report would pass.
  set(sanitize -fsanitize=${SHARDPROOF_SANITIZE} -fno-sanitize-recover=all)
  target_compile_options(shardproof_options INTERFACE ${sanitize} -fno-omit-frame-pointer)
  target_link_options(shardproof_options INTERFACE ${sanitize})
endif()

# SOURCE asks what the processor has: every processor must be able to run it.
function(shardproof_plain source)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-march=x86-64")
  endif()
endfunction()

# One library of the house: NAME, its sources, and the libraries directly below it. An INTERNAL one
# is not installed.
function(shardproof_library name)
  cmake_parse_arguments(ARG "INTERNAL" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(shardproof_${name} STATIC ${ARG_SOURCES})
  add_library(shardproof::${name} ALIAS shardproof_${name})
  # Position-independent, so that a user's shared library can link it.
  set_target_properties(shardproof_${name} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(shardproof_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/shardproof>)
  target_compile_features(shardproof_${name} PUBLIC cxx_std_20)
  target_link_libraries(shardproof_${name} PUBLIC ${ARG_PUBLIC}
    PRIVATE $<BUILD_INTERFACE:shardproof_options> ${ARG_PRIVATE})
  # What reads a user's texts and files tells libFuzzer what it did; nothing that computes does.
  if(SHARDPROOF_FUZZ AND name MATCHES "^(weights|layout|program|layouts|strategies|run|dump)$")
    target_compile_options(shardproof_${name} PRIVATE
      -fsanitize-coverage=inline-8bit-counters,pc-table)
  endif()
  if(NOT ARG_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY SHARDPROOF_LIBRARIES shardproof_${name})
  endif()
endfunction()
