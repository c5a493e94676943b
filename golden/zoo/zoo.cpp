#include "golden/zoo/zoo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "engine/run/case.h"
#include "engine/run/case_weights.h"
#include "golden/corpus/detail/listed.h"
#include "golden/corpus/detail/sha256.h"
#include "golden/corpus/manifest.h"
#include "golden/trace/claim/memory.h"
#include "golden/trace/verdict/verdict.h"
#include "golden/trace/verdict/wrong_value.h"
#include "oracle/request/storage.h"

namespace shardproof::zoo {
namespace {

namespace fs = std::filesystem;
using Verdict = CheckResult::Verdict;

constexpr std::string_view kSuffix = ".npz";

/// Checks that the list and the manifest name the same dumps.
void require_dumps(const std::vector<Fault>& faults,
                   const std::vector<corpus::ManifestEntry>& files) {
  std::set<std::string> paths;
  for (const corpus::ManifestEntry& file : files) paths.insert(file.path);
  paths.erase(std::string(kFaults));
  for (const Fault& fault : faults)
    for (const Specimen& specimen : fault.dumps)
      if (paths.erase(specimen.id + std::string(kSuffix)) == 0)
        throw Error("zoo_faults", fmt::format("{} has {}, and {} no {}{}", kFaults, specimen.id,
                                              corpus::kManifest, specimen.id, kSuffix));
  if (!paths.empty())
    throw Error("zoo_faults", fmt::format("{} lists {}, and {} no such dump", corpus::kManifest,
                                          *paths.begin(), kFaults));
}

std::string difference(const Specimen& specimen, const Answer& answer,
                       const std::vector<std::string>& kinds, bool leads) {
  if (const std::string asked = print_case(parse_case(specimen.line)); asked != answer.line)
    return fmt::format("it is of \"{}\", {} says \"{}\"", answer.line, kFaults, asked);
  if (specimen.first != answer.first)
    return fmt::format("the first divergence is {}, {} says {}",
                       answer.first.empty() ? "nowhere" : answer.first, kFaults, specimen.first);
  if (leads && !specimen.named)
    return fmt::format("{:?} is named now, {} says not yet", specimen.cause, kFaults);
  if (leads || (!specimen.named && kinds.empty())) return "";
  return fmt::format("{}, {} says {:?}{}",
                     kinds.empty() ? "nothing explains it"
                                   : fmt::format("the cause is {:?}", fmt::join(kinds, ", ")),
                     kFaults, specimen.cause, specimen.named ? "" : ", not yet");
}

}  // namespace

Answer answer_of(const dump::Dump& dump) {
  const dump::Claim claim = dump::read_claim(dump.attributes, std::nullopt);
  if (claim.in_field || claim.weights_of_file)
    throw Error("zoo_dump", fmt::format("a dump of {}; a zoo's have the weights of a case's seed",
                                        claim.in_field ? "the field regime" : "a weights file"));
  dump::require_memory(claim.source_case);
  const Weights weights =
      oracle::as_stored(generated_weights(claim.source_case), claim.source_case.numerics.weights);
  const dump::Values values = dump::read_values(dump, claim, weights);
  dump::Reference reference(values, claim, weights);
  const dump::Verdict verdict = dump::judge(values, claim, reference);
  return {print_case(claim.source_case), verdict.first ? verdict.rows[*verdict.first].name : "",
          dump::diagnosed(verdict, values, claim, reference)};
}

std::vector<std::string> leading_kinds(const std::vector<diagnosis::Hypothesis>& causes) {
  std::vector<std::string> kinds;
  for (const diagnosis::Hypothesis& cause : causes)
    if (cause.explains && cause.residual <= causes.front().residual &&
        std::find(kinds.begin(), kinds.end(), cause.fault) == kinds.end())
      kinds.push_back(cause.fault);
  return kinds;
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::named:
      return "named";
    case Verdict::unnamed:
      return "not yet";
    case Verdict::different:
      break;
  }
  return "different";
}

CheckResult check(const Specimen& specimen, const Answer& answer) {
  const std::vector<std::string> kinds = leading_kinds(answer.causes);
  const bool leads = kinds.size() <= kMostKinds &&
                     std::find(kinds.begin(), kinds.end(), specimen.cause) != kinds.end();
  CheckResult checked;
  checked.said = kinds.empty() ? "nothing explains it" : fmt::format("{}", fmt::join(kinds, ", "));
  checked.fault = difference(specimen, answer, kinds, leads);
  if (checked.fault.empty()) checked.verdict = leads ? Verdict::named : Verdict::unnamed;
  return checked;
}

const std::vector<Release>& released() {
  static const std::vector<Release> versions = {
      {1, "fa2608538c06b0d0b154e1e0a4d68f523e05e8df14cb6bf9591919c25c687817", 93, 212},
  };
  return versions;
}

int CheckedZoo::exit_code() const {
  return dumps > 0 && named + unnamed == dumps && fault.empty() ? 0 : 1;
}

bool is_zoo(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kFaults, error);
}

CheckedZoo check_zoo(const fs::path& folder, const Progress& progress) {
  const std::vector<corpus::ManifestEntry> files =
      corpus::parse_manifest(corpus::list_text(folder / corpus::kManifest, "manifest of a zoo"));
  corpus::require_listed(folder, files);
  const std::vector<Fault> faults =
      parse_faults(corpus::list_text(folder / kFaults, "list of a zoo's faults"));
  require_dumps(faults, files);
  CheckedZoo found;
  const std::string sum = corpus::sha256_of(folder / corpus::kManifest);
  for (const Release& release : released())
    if (release.manifest == sum) found.release = &release;
  for (const Fault& fault : faults) {
    ++found.faults;
    for (const Specimen& specimen : fault.dumps) {
      const dump::Dump dump = dump::read_dump(folder / (specimen.id + std::string(kSuffix)));
      const CheckResult checked = check(specimen, answer_of(dump));
      ++found.dumps;
      if (checked.verdict == Verdict::named) ++found.named;
      if (checked.verdict == Verdict::unnamed) ++found.unnamed;
      progress(specimen, checked);
    }
  }
  if (found.release != nullptr &&
      (found.faults != found.release->faults || found.dumps != found.release->dumps))
    found.fault = fmt::format("{} faults, {} dumps; released were {} and {}", found.faults,
                              found.dumps, found.release->faults, found.release->dumps);
  return found;
}

}  // namespace shardproof::zoo
