#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "golden/faults/matrix.h"
#include "weights/base/error.h"

namespace shardproof::tools {

/// What all say of a mutant in four characters: the detectors, then the checks of others.
std::string code_of(const faults::Sights& sights, bool equivalent);
/// The inverse; `equivalent` says whether it is so for a reason.
faults::Sights sights_of(std::string_view code, bool& equivalent);
/// The code of a mutant that was not judged.
inline constexpr std::string_view kNotJudged = "....";

/// The JSON of a study (docs/json.md).
nlohmann::json faults_json(const faults::Study& study, const std::vector<faults::Result>& results,
                           const faults::Matrix& matrix, const std::vector<std::string>& survivors);

/// What a file of `--json` says.
struct KnownOutcomes {
  std::vector<std::string> codes;  ///< of each case of the study, of all its mutants
  nlohmann::json file;
};
/// Throws Error("faults_against", ...) if the file is not one of `faults --json`, or of other cases
/// or mutants than those of `study`.
KnownOutcomes read_outcomes(const std::string& path, const faults::Study& study);
/// Returns the results that it holds of the study's mutants, and the matrix of those, with the
/// false alarms that it tells.
std::vector<faults::Result> results_of(const KnownOutcomes& known, const faults::Study& study);
faults::Matrix matrix_of(const KnownOutcomes& known, const faults::Study& study);

/// Returns a sentence for each result that is another than the file's.
std::vector<std::string> differences(const KnownOutcomes& known,
                                     const std::vector<faults::Result>& results);

}  // namespace shardproof::tools
