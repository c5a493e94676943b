# Which headers there are, and that each of them stands on its own.

# Headers in a folder detail/ are included by the house's own sources alone and are not installed.
# Everything that computes in floating point inline is there: an inline function takes the flags of
# whoever compiles it, and the linker keeps any one copy, so a user's flags could change the house's
# bits.
file(GLOB_RECURSE shardproof_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  engine/*.h golden/*.h oracle/*.h weights/*.h tools/drawing/*.h)
set(shardproof_public_headers ${shardproof_headers})
list(FILTER shardproof_public_headers EXCLUDE REGEX "/detail/")
# Of libraries that are not installed.
file(GLOB shardproof_internal_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  tools/binding/*.h tools/command/*.h tools/plan/*.h tools/report/*.h tools/runner/*.h tools/text/*.h
  tools/verbs/*.h)

# Every header guards itself, and is compiled alone: it compiles only if it includes what it uses. Of
# one with a source that includes it first, that is seen where the source is compiled alone
# (clang-tidy, and any build without SHARDPROOF_UNITY); the others have a translation unit here.
function(shardproof_check_headers)
  set(units)
  foreach(header IN LISTS shardproof_headers shardproof_internal_headers)
    set(path ${PROJECT_SOURCE_DIR}/${header})
    file(STRINGS ${path} guard REGEX "^#pragma once$")
    if(NOT guard)
      message(FATAL_ERROR "${header} has no #pragma once")
    endif()
    string(REGEX REPLACE "[.]h$" ".cpp" source ${path})
    if(EXISTS ${source})
      file(STRINGS ${source} first REGEX "^#include" LIMIT_COUNT 1)
      if(first STREQUAL "#include \"${header}\"")
        continue()
      endif()
    endif()
    string(REPLACE "/" "_" unit ${header})
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/headers/${unit}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${header}\"\n")
    list(APPEND units ${unit})
  endforeach()
  add_library(shardproof_headers OBJECT ${units})
  set_target_properties(shardproof_headers PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(shardproof_headers PRIVATE shardproof::plan shardproof::verbs
                                                   shardproof_options HDF5::HDF5 libzip::zip
                                                   CLI11::CLI11 rapidcheck)
  target_compile_options(shardproof_headers PRIVATE -Werror)
endfunction()
