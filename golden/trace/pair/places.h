#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/trace/claim/claim.h"
#include "golden/trace/read/dump.h"
#include "weights/base/error.h"

namespace shardproof::dump {

/// The rows and positions of the tokens of one pass, in numbers that two traces share.
struct PassPlaces {
  std::int64_t B = 0, L = 0;
  /// By row of the pass: the rows of the shared numbering that it stands for, several for one of a
  /// prefix; none if it is not to be matched.
  std::vector<std::vector<std::int64_t>> rows;
  std::vector<std::int64_t> positions;  ///< [BL]; -1: no token, or not to be matched
  std::vector<std::int64_t> own;        ///< [BL]: in the run itself, by its case; -1: no token
  /// By row the l of its last token, of which values without L are; -1: none. Its position may be
  /// -1.
  std::vector<std::int64_t> last;
  std::int64_t first_slot = 0;  ///< the position that slot 0 of a cache holds

  /// Returns that token's position; -1 if there is none, or it is not to be matched.
  std::int64_t last_position(std::int64_t row) const { return of_last(positions, row); }
  /// Returns that token's position in the run itself; -1 if there is none.
  std::int64_t last_own(std::int64_t row) const { return of_last(own, row); }

 private:
  std::int64_t of_last(const std::vector<std::int64_t>& all, std::int64_t row) const {
    const std::int64_t l = last[static_cast<std::size_t>(row)];
    return l < 0 || l >= L ? -1 : all[static_cast<std::size_t>(row * L + l)];
  }
};
using TokenPlaces = std::map<std::string, PassPlaces>;  ///< by pass

/// Returns the places of a trace's passes: those of its case, with the rows' numbers of `rows` and
/// the shift of `positions`; where the trace has PASS.rows or PASS.positions, by these
/// (docs/trace-format.md). Throws Error("dump_attribute", ...) for a map without meaning.
TokenPlaces places_of(const Claim& claim, const Dump& dump);

/// Returns the places of passes of which nothing is known but their names and extents [B, L]: each
/// begins where the one before it ends. Throws as places_of().
TokenPlaces places_of(const std::vector<std::pair<std::string, Shape>>& passes, const Dump& dump);

/// Returns a name, or a title, without its pass.
std::string without_pass(std::string name, const std::string& pass);

/// Returns the number of a pass in the order of a run: prefix.c0, ..., prefill.c0, ..., decode.1,
/// ...; -1 if it is not the name of a pass.
std::int64_t place_of_pass(std::string_view name);

}  // namespace shardproof::dump
