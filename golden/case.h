#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run/inference.h"
#include "weights/error.h"

namespace shardproof {

/// One case: a line of text that says everything a run depends on (docs/spec.md section 6).
struct Case {
  Torus torus{2, 2, 2};
  ModelConfig model;
  Strategy prefill, decode;
  Numerics numerics;
  std::int64_t batch = 1;
  std::int64_t prompt = 4;
  std::int64_t chunk = 4;  ///< prefill chunk length, prompt for one chunk
  std::int64_t gen = 2;    ///< tokens to generate
  std::uint64_t seed = 1;

  Inference inference(const GivenLayers& layers = {}) const {
    return {torus, model, numerics, prefill, decode, batch, prompt, chunk, gen, layers};
  }
  bool operator==(const Case&) const = default;
};

/// The keys of a case line, in the order they are printed.
const std::vector<std::string>& case_keys();

/// Reads "torus=4x2x3 model=palm-tiny prefill=ws2d:heads decode=ws2d:batch ...", keys in any order;
/// what is left out takes its default (batch: the smallest legal one; prompt: the smallest legal
/// one of at least 4). `own` are strategies beside those that ship. Throws Error: "case_c0" (no
/// key=value), "case_c1" (unknown key, the nearest named), "case_c2" (repeated key), "case_c3" (a
/// value that is no number or out of range); and what parse_model,
/// parse_block, Torus, Strategy and the parsers of numerics throw.
Case parse_case(std::string_view line, const std::vector<Strategy>& own = {});

/// Every key in one fixed order; parse_case(print_case(c)) == c. A strategy that a layer program
/// stands for is left out, as is the decode's behind a prefill's program without decode steps.
std::string print_case(const Case& c, const GivenLayers& layers = {});

/// Throws what validate(ModelConfig), require_legal(Inference) and build_programs throw.
void require_legal(const Case& c);

/// Multiply-adds of the unsharded model over the whole case: what the oracle must do.
double multiply_adds(const Case& c);

}  // namespace shardproof
