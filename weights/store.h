#pragma once

#include <filesystem>

#include "weights/error.h"
#include "weights/weights.h"

namespace shardproof {

/// The version of the weights file this build writes and reads.
inline constexpr int kWeightsFormat = 1;

/// Writes an HDF5 file: root attributes `format` ("shardproof-weights"), `version` (int), `model`
/// (print_model text), and one row-major f32 dataset per weight with attribute `dims` and a
/// Fletcher32 checksum. Written to a temporary file beside `path`, then renamed: no partial output.
/// Throws Error("weights_write", ...) naming the path and the reason.
void save_weights(const Weights& weights, const std::filesystem::path& path);

/// Reads what save_weights wrote, or what another program wrote in that format.
/// Throws Error, one line each: "weights_open" (missing, not a regular file, unreadable, no HDF5,
/// truncated, declaring far more than a file of its size can hold), "memory_c1" (declaring more
/// than this process may take), "weights_version", "weights_model", "weights_name",
/// "weights_shape", "weights_type", "weights_checksum" (corrupt data), "weights_value" (non-finite,
/// tensor and index named).
Weights load_weights(const std::filesystem::path& path);

}  // namespace shardproof
