#include "golden/trace/reference/token_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "golden/bounds/value/replay.h"
#include "golden/compare/row_padding.h"
#include "golden/trace/value/detail/each_number.h"
#include "weights/base/detail/index.h"
#include "weights/storage/generator.h"

namespace shardproof::dump {
namespace {

bool is_id(double v, std::int64_t V) {
  return v >= 0 && v < static_cast<double>(V) && v == std::floor(v);
}

/// Returns a value as token ids; kUnknownId for numbers that are not a valid id.
std::optional<IntTensor> integers(const DumpedValue& dumped, std::int64_t V) {
  const auto whole = assembled_value(dumped);
  if (!whole) return std::nullopt;
  IntTensor ids(whole->shape);
  for (std::size_t i = 0; i < ids.data.size(); ++i)
    ids.data[i] = is_id(whole->center[i], V) ? static_cast<std::int32_t>(whole->center[i])
                                             : bounds::Replay::kUnknownId;
  return ids;
}

bool has_unknown(const IntTensor& ids) {
  return std::find(ids.data.begin(), ids.data.end(), bounds::Replay::kUnknownId) != ids.data.end();
}

const DumpedValue* find(const Values& values, Meaning meaning, const std::string& pass) {
  for (const DumpedValue& dumped : values.dumped)
    if (dumped.subject.meaning == meaning && dumped.subject.pass == pass && !dumped.misfit)
      return &dumped;
  return nullptr;
}

/// Calls see(place in the ids [BL] of a pass, place in the prompt) for each token of a pass before
/// the decode, without padding; a prefix's token once per row of the prompt that shares it.
template <class See>
void each_token(const PassPlan& pass, const SharedPrefix& prefix, const IntTensor& prompt,
                See&& see) {
  const std::int64_t B = prompt.shape[0];
  const bool shared = pass.phase == Phase::prefix;
  std::int64_t row = 0;
  for (const PassRows& group : pass.rows)
    for (std::int64_t n = 0; n < group.rows; ++n, ++row)
      for (std::int64_t b = 0; b < B; ++b) {
        if ((shared ? prefix.of_row(b, B) : b) != row) continue;
        for (std::int64_t l = 0; l < group.tokens; ++l)
          see(at(row * pass.L + l), at(b * prompt.shape[1] + group.start + l));
      }
}

/// Returns the ids [BL] of a pass before the decode, taken from a prompt; 0 at padding.
IntTensor ids_of(const PassPlan& pass, const SharedPrefix& prefix, const IntTensor& prompt) {
  IntTensor ids(Shape{pass.batch(), pass.L});
  each_token(pass, prefix, prompt, [&](std::size_t place, std::size_t in_prompt) {
    ids.data[place] = prompt.data[in_prompt];
  });
  return ids;
}

}  // namespace

/// If a trace has ids of any pass, its prompt is not the case's: ids that it lacks are unknown.
TokenIds::TokenIds(const Values& values, const Claim& claim, const Passes& passes)
    : passes_(passes), V_(claim.source_case.model.V) {
  prompt_ = generate_prompt(claim.source_case.model, claim.source_case.seed, passes_.batch(),
                            passes_.prompt(), passes_.prefix());
  const bool any =
      !claim.ids_are_given &&
      std::any_of(values.dumped.begin(), values.dumped.end(),
                  [](const DumpedValue& dumped) { return dumped.subject.meaning == Meaning::ids; });
  for (std::int64_t i = 0; i < passes_.size(); ++i) {
    const PassPlan pass = passes_.at(i);
    if (pass.phase == Phase::decode) break;
    case_ids_[pass.name] = ids_of(pass, passes_.prefix(), prompt_);
    std::optional<IntTensor> own;
    if (const DumpedValue* const dumped = find(values, Meaning::ids, pass.name)) {
      own = integers(*dumped, V_);
      note_no_id(*dumped, pass);
    }
    std::vector<std::size_t> unknown;
    each_token(pass, passes_.prefix(), prompt_, [&](std::size_t place, std::size_t in_prompt) {
      const std::int32_t id = own   ? own->data[place]
                              : any ? bounds::Replay::kUnknownId
                                    : prompt_.data[in_prompt];
      if (id == bounds::Replay::kUnknownId)
        unknown.push_back(place);
      else
        prompt_.data[in_prompt] = id;
    });
    IntTensor& ids = ids_[pass.name] = ids_of(pass, passes_.prefix(), prompt_);
    for (const std::size_t place : unknown) ids.data[place] = bounds::Replay::kUnknownId;
  }
}

void TokenIds::decode(const Values& values, const oracle::Answer& answer) {
  bool same = true, known = true;
  for (const DumpedValue& dumped : values.dumped)
    known = known && !dumped.given;  // given values may come from another model's tokens
  std::vector<std::string> sampled_in(
      at(passes_.batch()));  // per row: the last pass so far that sampled it
  for (std::int64_t i = 0; i < passes_.size(); ++i) {
    const PassPlan pass = passes_.at(i);
    if (pass.phase == Phase::decode) {
      ids_[pass.name] = decoded_ids(values, pass, sampled_in, known, answer);
      if (const DumpedValue* const dumped = find(values, Meaning::ids, pass.name))
        note_no_id(*dumped, pass);
      same = same && ids_[pass.name].data == answer.inputs.at(pass.name + ".ids").data;
    }
    known = known && !has_unknown(ids_[pass.name]);
    same = same && known;
    same_ids_[pass.name] = same;
    const RowsOfPass rows(pass);  // passes over prefixes have fewer rows, which sample nothing
    for (std::size_t row = 0; row < rows.samples.size(); ++row)
      if (rows.samples[row]) sampled_in[row] = pass.name;
  }
}

/// Returns the trace's own ids; else its tokens of the preceding passes; else, if everything before
/// is `known`, the unsharded model's tokens.
IntTensor TokenIds::decoded_ids(const Values& values, const PassPlan& pass,
                                const std::vector<std::string>& sampled_in, bool known,
                                const oracle::Answer& answer) const {
  IntTensor ids = answer.inputs.at(pass.name + ".ids");
  if (const DumpedValue* const dumped = find(values, Meaning::ids, pass.name))
    if (const auto own = integers(*dumped, V_)) {
      ids.data = own->data;
      return ids;
    }
  std::map<std::string, std::optional<IntTensor>> tokens;
  for (std::size_t row = 0; row < sampled_in.size(); ++row) {
    const auto [of, is_new] = tokens.try_emplace(sampled_in[row]);
    if (const DumpedValue* const dumped = find(values, Meaning::token, of->first);
        is_new && dumped != nullptr)
      of->second = integers(*dumped, V_);
    if (of->second)
      ids.data[row] = of->second->data[row];
    else if (!known)
      ids.data[row] = bounds::Replay::kUnknownId;
  }
  return ids;
}

/// Records a number that is not a valid token id; padding may hold anything.
void TokenIds::note_no_id(const DumpedValue& dumped, const PassPlan& pass) {
  each_number(dumped, [&](double v, const std::vector<int>&, std::int64_t, double) {
    if (!is_id(v, V_)) no_ids_.emplace(pass.name, v);
  });
}

std::optional<double> TokenIds::no_id(const std::string& pass) const {
  const auto found = no_ids_.find(pass);
  return found == no_ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string TokenIds::unknown(const std::string& name) const {
  if (name.empty()) return "";  // a weight
  std::vector<std::string> without;
  std::string none;
  for (std::int64_t i = 0; i < passes_.size(); ++i) {
    const PassPlan pass = passes_.at(i);
    if (const auto bad = no_id(pass.name); bad && none.empty())
      none = fmt::format("{} of {}.ids is not a token id", *bad, pass.name);
    else if (!bad && has_unknown(ids_.at(pass.name)))
      without.push_back(pass.name);
    if (pass.name == name) break;
  }
  if (without.empty()) return none;
  return fmt::format("the trace has no ids of {}{}", without.front(),
                     without.size() > 1 ? " to " + without.back() : "");
}

}  // namespace shardproof::dump
