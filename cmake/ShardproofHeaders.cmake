# Which headers there are, and that each of them stands on its own.

# Headers that only the house's own sources include, and that are not installed. Everything that
# computes in floating point inline is among them: an inline function takes the flags of whoever
# compiles it, and the linker keeps any one copy, so a user's flags could change the house's bits.
set(shardproof_private_headers
  engine/box.h
  engine/chip_map.h
  engine/cost/closed_form_rows.h
  engine/cost/comparison_rows.h
  engine/cost/monomial.h
  engine/cost/path_floors.h
  engine/cost/shipped_chips.h
  engine/cost/table_bounds.h
  engine/cost/table_space.h
  engine/cost/torus_search.h
  engine/f32_sums.h
  engine/field_sums.h
  engine/formulas.h
  engine/joint_sums.h
  engine/layouts/rules.h
  engine/local_term.h
  engine/numeric/compensated_sum.h
  engine/numeric/cpu_needs.h
  engine/numeric/functions.h
  engine/numeric/kernels.h
  engine/numeric/rounding_test.h
  engine/numeric/tile_sum.h
  engine/partial_sums.h
  engine/program/overflow.h
  engine/program/statement.h
  engine/program/typing_rules.h
  engine/run/type_check.h
  engine/runs.h
  engine/strategies/shipped.h
  engine/op_rules.h
  golden/bounds/running.h
  golden/dump/allowance.h
  golden/dump/element_type.h
  golden/dump/hdf5_attributes.h
  golden/dump/hdf5_trace.h
  golden/dump/json_attributes.h
  golden/dump/npy_header.h
  golden/dump/npz_trace.h
  golden/dump/place.h
  golden/dump/process.h
  golden/dump/sink.h
  golden/dump/stream.h
  golden/dump/unicode.h
  golden/dump/zip_archive.h
  golden/candidate/each_number.h
  golden/candidate/same_bits.h
  golden/corpus/collective_samples.h
  golden/corpus/collectives.h
  golden/corpus/explained.h
  golden/corpus/layouts.h
  golden/corpus/operand.h
  golden/corpus/sha256.h
  golden/corpus/stacked.h
  golden/diagnosis/chips.h
  golden/diagnosis/contraction.h
  golden/diagnosis/families.h
  golden/diagnosis/fit.h
  golden/diagnosis/norm_row.h
  golden/diagnosis/orders.h
  golden/diagnosis/question.h
  golden/diagnosis/search.h
  golden/diagnosis/what_if.h
  golden/scalar/adding.h
  golden/scalar/sampling.h
  golden/trace/arithmetic.h
  golden/trace/copies.h
  golden/trace/file.h
  golden/trace/size.h
  oracle/block.h
  oracle/constants.h
  oracle/field/arithmetic.h
  oracle/field/block.h
  oracle/field/pass.h
  oracle/field/philox.h
  oracle/field/random.h
  oracle/field/sample.h
  oracle/functions.h
  oracle/natural.h
  oracle/pass.h
  oracle/row_alone.h
  oracle/request_check.h
  oracle/sampling.h
  tools/drawing/collective_card.h
  tools/drawing/glyphs.h
  tools/drawing/header_card.h
  tools/drawing/lettering.h
  tools/drawing/page.h
  tools/drawing/ring_grid.h
  tools/drawing/scene.h
  tools/drawing/value_card.h
  weights/descriptor.h
  weights/hdf5/attribute.h
  weights/hdf5/handle.h
  weights/hdf5/image.h
  weights/hdf5/inflation.h
  weights/hdf5/reader.h
  weights/hdf5/writer.h
  weights/replace_file.h
  weights/temporary_name.h
  weights/text_file.h
  weights/word_table.h
  weights/stable_sort.h
  weights/words.h)

file(GLOB_RECURSE shardproof_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  engine/*.h golden/*.h oracle/*.h weights/*.h tools/drawing/*.h)
foreach(header IN LISTS shardproof_private_headers)
  if(NOT header IN_LIST shardproof_headers)
    message(FATAL_ERROR "${header} is listed as a private header, but there is no such file")
  endif()
endforeach()
set(shardproof_public_headers ${shardproof_headers})
list(REMOVE_ITEM shardproof_public_headers ${shardproof_private_headers})
# Of a library that is not installed.
file(GLOB shardproof_internal_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  tools/runner/*.h)

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
  target_link_libraries(shardproof_headers PRIVATE shardproof::corpus shardproof::cost shardproof::runner shardproof::drawing
                                                   shardproof_options HDF5::HDF5 libzip::zip
                                                   rapidcheck)
  target_compile_options(shardproof_headers PRIVATE -O0 -Werror)
endfunction()
