#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "golden/trace/read/dump.h"
#include "weights/base/error.h"
#include "weights/base/tensor.h"

namespace shardproof::corpus {

/// The kind of a golden (docs/golden.md), its attribute `golden`.
enum class Kind {
  layouts,      ///< L0: each chip's block of a tensor
  collectives,  ///< L1: a collective's operand and its result
  model         ///< L2 and L3: every named value of a run, its weights and its token ids
};
std::string_view to_string(Kind kind);

/// Returns a golden without values: a trace of version 1 whose arrays are whole or stacked over the
/// mesh x y z.
dump::Dump empty_golden(Kind kind);

/// Throws Error("golden_kind", ...) if the trace is not a golden of a kind known to this build.
Kind kind_of(const dump::Dump& golden);

/// Adds a value and sets its attribute `order`.
void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const float> elements, dump::Attributes attributes);
void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const std::int32_t> elements, dump::Attributes attributes);
void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const std::int8_t> elements, dump::Attributes attributes);

/// Writes an HDF5 file atomically. Throws Error("golden_write", ...) naming path and reason.
void save(const dump::Dump& golden, const std::filesystem::path& path);

/// Returns the first difference of a golden from the expected one: attribute, array, shape, type or
/// element, with the bits of both; nothing if they are the same.
std::optional<std::string> first_difference(const dump::Dump& expected, const dump::Dump& golden);

}  // namespace shardproof::corpus
