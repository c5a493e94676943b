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

/// What a golden is about (docs/golden.md): its attribute `golden`.
enum class Kind {
  layouts,      ///< L0: what each chip holds of a tensor
  collectives,  ///< L1: a collective's operand and its result
  model         ///< L2 and L3: every named value of a run, its weights and its token ids
};
std::string_view to_string(Kind kind);

/// A golden is a trace of version 1 whose arrays are whole or stacked over the mesh x y z: this is
/// one without values.
dump::Dump empty_golden(Kind kind);

/// Throws Error("golden_kind", ...) where the trace is no golden of a kind that this build knows.
Kind kind_of(const dump::Dump& golden);

/// Adds a value; `order` is written by itself.
void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const float> elements, dump::Attributes attributes);
void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const std::int32_t> elements, dump::Attributes attributes);
void put(dump::Dump& golden, const std::string& name, const Shape& shape,
         std::span<const std::int8_t> elements, dump::Attributes attributes);

/// As an HDF5 file, whole or not at all. Throws Error("golden_write", ...) naming path and reason.
void save(const dump::Dump& golden, const std::filesystem::path& path);

/// What of a golden is not as it must be: the first attribute, array, shape, type or element, with
/// the bits of both; nothing if they are the same.
std::optional<std::string> first_difference(const dump::Dump& expected, const dump::Dump& golden);

}  // namespace shardproof::corpus
