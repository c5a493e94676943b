#pragma once

#include <filesystem>

#include "weights/base/error.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// The version of the file of weights that are kept so: 1 of f32, 2 of int8. This build writes and
/// reads both.
int weights_format(WeightType kept);

/// Writes an HDF5 file: root attributes `format` ("shardproof-weights"), `version` (int), `model`
/// (print_model text), and one row-major dataset per weight with attribute `dims` and a Fletcher32
/// checksum: of f32, or of signed 8-bit integers where the weights are kept as int8 and it is a
/// matrix of codes. Written to a temporary file beside `path`, then renamed: no partial output.
/// Throws what validate throws, and Error("weights_write", ...) naming the path and the reason.
void save_weights(const Weights& weights, const std::filesystem::path& path);

/// Reads what save_weights wrote, or what another program wrote in that format.
/// Throws Error, one line each: "weights_open" (missing, not a regular file, unreadable, no HDF5,
/// truncated, declaring far more than a file of its size can hold), "memory_c1" (declaring more
/// than this process may take), "weights_version", "weights_model", "weights_name",
/// "weights_shape", "weights_type", "weights_checksum" (corrupt data), "weights_value" (as
/// validate: tensor and index named). A file of version 2 gives weights that are kept as int8.
Weights load_weights(const std::filesystem::path& path);

}  // namespace shardproof
