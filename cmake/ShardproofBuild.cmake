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
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # A tenth of the time is the compiler's own collection of garbage below 1 GB.
  target_compile_options(shardproof_options INTERFACE --param=ggc-min-heapsize=1048576)
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

# What most sources include of others, compiled once for all of a build. That every source names what
# it uses is seen by clang-tidy, whose build precompiles nothing. With ccache, for which a precompiled
# header is one file that always changes, it is off.
set(shardproof_pch OFF)
if(SHARDPROOF_PCH AND NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(shardproof_pch ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # From precompiled headers of the library g++ 12 reports copies of more bytes than there are.
    target_compile_options(shardproof_options INTERFACE -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()
# NAME compiles these headers for the targets that reuse them.
function(shardproof_precompile name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK;FLAGS" ${ARGN})
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "// Gives the headers a unit to be compiled for.\n")
  add_library(${name} OBJECT ${unit})
  target_link_libraries(${name} PRIVATE shardproof_options ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${ARG_FLAGS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# Several sources are compiled as one, which share the headers of others: a clean build takes half
# the time. Sources that give one name to two things, or of which g++ then warns for nothing, are
# compiled apart. That every source names what it uses is seen where each is compiled alone: by
# clang-tidy, and in any build without SHARDPROOF_UNITY.
set(CMAKE_UNITY_BUILD ${SHARDPROOF_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 32)
function(shardproof_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# SOURCE asks what the processor has: every processor must be able to run it.
function(shardproof_plain source)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-march=x86-64")
  endif()
endfunction()

# Kernels are compiled for each instruction set, and weights/base/isa.cpp chooses one at run time.
# SOURCES becomes those of STEM: STEM_scalar.cpp and, on x86-64, STEM_avx2.cpp and STEM_avx512.cpp.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-march=x86-64-v4 SHARDPROOF_HAS_V4)
set(shardproof_vector_kernels OFF)
if(SHARDPROOF_HAS_V4 AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(shardproof_vector_kernels ON)
endif()
function(shardproof_kernels sources stem)
  set(all ${stem}_scalar.cpp)
  if(shardproof_vector_kernels)
    list(APPEND all ${stem}_avx2.cpp ${stem}_avx512.cpp)
    # g++ 12 takes the undefined operand of its own AVX-512 header for a mistake (GCC bug 105593).
    set(quiet "$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>")
    set_source_files_properties(${stem}_avx2.cpp PROPERTIES
      COMPILE_OPTIONS "-march=x86-64-v3;${quiet}")
    set_source_files_properties(${stem}_avx512.cpp PROPERTIES
      COMPILE_OPTIONS "-march=x86-64-v4;-mprefer-vector-width=512;${quiet}")
  endif()
  set(${sources} ${all} PARENT_SCOPE)
endfunction()
# SOURCE names kernels of instruction sets: it is told whether there are any besides the scalar one.
function(shardproof_chooser source)
  if(shardproof_vector_kernels)
    set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS SHARDPROOF_VECTOR_KERNELS)
  endif()
endfunction()

# What a library without loops over elements costs is to compile it.
set(shardproof_light_flags ${SHARDPROOF_LIGHT_FLAGS})
if(SHARDPROOF_LIGHT_FLAGS STREQUAL "" AND CMAKE_BUILD_TYPE STREQUAL Release)
  set(shardproof_light_flags -O1)
endif()

# One library of the house: NAME, the folder of its sources, others that are elsewhere, and the
# libraries directly below it. An INTERNAL one is not installed. One that COMPUTES has loops over
# elements and is optimized as the build type says. HEADERS names other precompiled headers than
# those of most libraries.
function(shardproof_library name)
  cmake_parse_arguments(ARG "INTERNAL;COMPUTES" "FOLDER;HEADERS" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(ARG_FOLDER)
    file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
      ${ARG_FOLDER}/*.cpp ${ARG_FOLDER}/detail/*.cpp)
    list(APPEND ARG_SOURCES ${sources})
  endif()
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
  set(flags)
  if(NOT ARG_COMPUTES)
    set(flags ${shardproof_light_flags})
  endif()
  target_compile_options(shardproof_${name} PRIVATE ${flags})
  if(shardproof_pch)
    if(NOT ARG_HEADERS)
      set(ARG_HEADERS shardproof_library_headers)
      # A compiler takes them only with the optimization that they were compiled with.
      if(flags STREQUAL "-O0")
        set(ARG_HEADERS shardproof_light_headers)
      endif()
    endif()
    if(NOT TARGET ${ARG_HEADERS})
      shardproof_precompile(${ARG_HEADERS} LINK fmt::fmt
        HEADERS <algorithm> <cstdint> <functional> <map> <memory> <optional> <set> <string>
                <utility> <vector> <fmt/format.h> <fmt/ranges.h>)
      set_target_properties(${ARG_HEADERS} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      if(ARG_HEADERS STREQUAL shardproof_light_headers)
        target_compile_options(${ARG_HEADERS} PRIVATE ${flags})
      endif()
    endif()
    target_precompile_headers(shardproof_${name} REUSE_FROM ${ARG_HEADERS})
  endif()
  # What reads a user's texts and files tells libFuzzer what it did; nothing that computes does.
  if(SHARDPROOF_FUZZ AND name MATCHES
     "^(weights_.*|layout|ops|program|layouts|strategies|run|cost_.*|trace_read)$")
    target_compile_options(shardproof_${name} PRIVATE
      -fsanitize-coverage=inline-8bit-counters,pc-table)
  endif()
  if(NOT ARG_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY SHARDPROOF_LIBRARIES shardproof_${name})
  endif()
endfunction()

# Several libraries under one name, for users.
function(shardproof_group name)
  add_library(shardproof_${name} INTERFACE)
  add_library(shardproof::${name} ALIAS shardproof_${name})
  set_target_properties(shardproof_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(shardproof_${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/shardproof>)
  target_link_libraries(shardproof_${name} INTERFACE ${ARGN})
  set_property(GLOBAL APPEND PROPERTY SHARDPROOF_LIBRARIES shardproof_${name})
endfunction()
