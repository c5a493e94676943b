#include "engine/program/step_memo.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>

namespace shardproof {
namespace {

/// The most pieces of a plan that is kept: 400 KB.
constexpr std::size_t kMostPieces = 1 << 14;

std::size_t pieces_held(const Moves& plan) {
  std::unordered_set<const void*> lists;  // a list that several chips share is counted once
  std::size_t pieces = 0;
  for (std::size_t chip = 0; chip < plan.pieces.size(); ++chip)
    if (lists.insert(plan.pieces.identity(chip)).second) pieces += plan.pieces[chip].size();
  return pieces;
}

}  // namespace

bool OpMemo::is_of(const std::vector<SharedValue>& args) const {
  return !args.empty() && args[0]->torus() == torus_ &&
         std::equal(args.begin(), args.end(), operands_.begin(), operands_.end(),
                    [](const SharedValue& arg, const Type& type) {
                      return arg->shape() == type.shape && arg->layout() == type.layout &&
                             arg->is_integral() == type.integer;
                    });
}

void OpMemo::begin(const std::vector<SharedValue>& args, std::vector<Type> results) {
  torus_ = args.empty() ? Torus() : args[0]->torus();
  operands_.clear();
  for (const SharedValue& arg : args) operands_.push_back(arg->type());
  results_ = std::move(results);
  plan_ = nullptr;
}

void OpMemo::keep(const std::shared_ptr<const Moves>& plan) {
  if (pieces_held(*plan) <= kMostPieces) plan_ = plan;
}

}  // namespace shardproof
