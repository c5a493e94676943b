#pragma once

#include <filesystem>

#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// Returns the file format version of weights stored as `type`: 1 for f32, 2 for int8. This build
/// reads and writes both.
int weights_format(NumberFormat type);

/// Writes an HDF5 file: root attributes `format` ("shardproof-weights"), `version` (int), `model`
/// (print_model text), and one row-major dataset per weight with attribute `dims` and a Fletcher32
/// checksum: f32, or signed 8-bit integers for matrices of codes. Written to a temporary file
/// beside `path`, then renamed: no partial output. Throws what validate throws, and
/// Error("weights_write", ...) naming the path and the reason.
void save_weights(const Weights& weights, const std::filesystem::path& path);

/// Reads a file in the format of save_weights, from any program. Throws Error, one line each:
/// "weights_open" (missing, not a regular file, unreadable, not HDF5, truncated, declaring far more
/// than a file of its size can hold), "memory_c1" (declaring more than this process may use),
/// "weights_version", "weights_model", "weights_name", "weights_shape", "weights_type",
/// "weights_checksum" (corrupt data), "weights_value" (as validate: tensor and index named). A file
/// of version 2 gives int8 weights. Weights of more than `room` bytes are read again when they are
/// asked for.
Weights load_weights(const std::filesystem::path& path, std::size_t room = Weights::kRoom);

}  // namespace shardproof
