#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/run/plan.h"
#include "golden/memo/memo.h"
#include "oracle/field/answer.h"
#include "oracle/model/oracle.h"
#include "weights/base/error.h"
#include "weights/model/field_setting.h"
#include "weights/storage/weights.h"

namespace shardproof {

/// The oracle's answers, computed once for all cases that ask the same: they do not depend on the
/// torus or a strategy. Keeps the latest few. Safe to share between threads.
class OracleMemo {
 public:
  struct Known {
    Weights weights;  ///< as stored for the run
    Weights stored;   ///< as the oracle keeps them, which weights of a run must be
    IntTensor prompt;
    oracle::Answer answer;
  };

  /// The answer for the passes of the plan. `given` replaces the generated weights; the same object
  /// for every call. `threads` share the work where it is not done yet; nothing depends on them.
  /// Throws what the generator and oracle::run throw.
  std::shared_ptr<const Known> get(const RunPlan& plan, const Weights* given = nullptr,
                                   int threads = 1);
  /// The same of a case that is not planned: for its own passes.
  std::shared_ptr<const Known> get(const Case& c, const Weights* given = nullptr);

  /// What the field regime knows of a case: its ids and the unsharded model's values.
  struct OfField {
    IntTensor ids;
    oracle::field::Answer answer;
  };
  /// Of the plan's passes and model with numbers of this setting. Throws what generate_ids and
  /// oracle::field::run throw.
  std::shared_ptr<const OfField> of_field(const RunPlan& plan, const FieldSetting& setting,
                                          int threads = 1);

 private:
  std::shared_ptr<const Known> get(const Case& c, const Passes& passes,
                                   const std::vector<std::int64_t>& row_ids, const Weights* given,
                                   int threads);

  Memo<Known> known_{16};
  Memo<OfField> of_field_{4};
};

}  // namespace shardproof
