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

/// The oracle's answers, computed once for all cases with the same question, since they do not
/// depend on the torus or a strategy. Keeps the most recent ones. Safe to share between threads.
class OracleMemo {
 public:
  struct Known {
    Weights weights;  ///< as stored for the run
    Weights stored;   ///< as the oracle keeps them; a run's weights must equal these
    IntTensor prompt;
    oracle::Answer answer;
  };

  /// Returns the answer for the passes of the plan. `given` replaces the generated weights and must
  /// be the same object in every call. `threads` share the work if it is not cached; the result
  /// does not depend on them. Throws what the generator and oracle::run throw.
  std::shared_ptr<const Known> get(const RunPlan& plan, const Weights* given = nullptr,
                                   int threads = 1);
  /// Returns the answer of a case without a plan, for its own passes.
  std::shared_ptr<const Known> get(const Case& c, const Weights* given = nullptr);

  /// The field regime's ids and unsharded values for a case.
  struct OfField {
    IntTensor ids;
    oracle::field::Answer answer;
  };
  /// Returns the field regime's answer for the plan's passes and model, with numbers of this
  /// setting. Throws what generate_ids and oracle::field::run throw.
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
