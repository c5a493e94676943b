#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/run/case_weights.h"
#include "engine/run/inference.h"
#include "golden/memo/oracle_memo.h"
#include "golden/trace/verdict/field_verdict.h"
#include "golden/trace/verdict/verdict.h"
#include "golden/trace/write/trace.h"
#include "oracle/request/storage.h"
#include "tests/golden/text/text_case.h"
#include "weights/storage/generator.h"

namespace shardproof {

/// Runs a plan under an observer, with the numbers of its regime.
inline void run(const RunPlan& plan, Observer& observer) {
  const Case& c = plan.source_case;
  Threads threads(1);
  if (c.numerics.regime == Regime::field) {
    OracleMemo memo;
    FieldSetting setting;
    setting.seed = c.seed;
    const auto known = memo.of_field(plan, setting);
    run_inference(plan, Weights(c.model, {}), known->ids, threads, &observer, {}, {}, nullptr,
                  std::make_shared<const Field>(setting));
    return;
  }
  const Weights weights = oracle::as_stored(generated_weights(c), c.numerics.weights);
  const IntTensor prompt = generate_prompt(c.model, c.seed, c.batch, c.prompt, c.prefix);
  run_inference(plan, weights, prompt, threads, &observer);
}

/// Writes the trace of a plan's run, and reads it.
inline dump::Dump trace_of(const TypedPlan& typed) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / fmt::format("text{}.h5", ::getpid());
  {
    Trace trace(typed, path);
    run(typed.plan, trace);
    trace.write("complete");
  }
  dump::Dump dump = dump::read_dump(path);
  std::filesystem::remove(path);
  return dump;
}

inline dump::Verdict verdict_of(const dump::Dump& dump) {
  const dump::Claim claim = dump::read_claim(dump.attributes, std::nullopt);
  const Case& c = claim.source_case;
  if (claim.in_field) {
    dump::Values values;
    return dump::judge_in_field(dump, claim, values);
  }
  const Weights weights = oracle::as_stored(generated_weights(c), c.numerics.weights);
  const dump::Values values = dump::read_values(dump, claim, weights);
  dump::Reference reference(values, claim, weights);
  return dump::judge(values, claim, reference);
}

inline std::string first_of(const dump::Verdict& verdict) {
  return verdict.first ? verdict.rows[*verdict.first].title : "";
}

inline void expect_right(const std::string& name, const Case& c) {
  const dump::Verdict verdict = verdict_of(trace_of(make_typed_plan(c)));
  EXPECT_EQ(verdict.exit_code(bounds::Fit::unlikely), 0)
      << name << " " << print_case(c) << ": " << shardproof::first_of(verdict);
  EXPECT_EQ(verdict.compared, verdict.whole) << name << " " << print_case(c);
}

/// A text with sizes so small that hundreds of traces are soon written and judged.
inline ModelText small_text(const std::string& name) {
  ModelText text = text_model(case_of_text(name, "").model)->text();
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"E", "8"}, {"F", "8"}, {"H", "4"}, {"K", "2"}, {"Q", "4"}, {"V", "12"}, {"P", "8"}})
    if (text.small.contains(key)) text.small.at(key).value = value;
  return text;
}

/// An f32 array's element, whatever stood there.
inline void poke(dump::StoredArray& array, std::size_t i, float v) {
  std::memcpy(array.bytes.data() + i * sizeof v, &v, sizeof v);
}

inline dump::Dump f32_trace(const char* text, const char* keys) {
  return trace_of(make_typed_plan(
      case_with_text(small_text(text),
                     fmt::format("torus=2x1x2 prefill=ws2d:batch regime=f32 prompt=5 {}", keys))));
}

}  // namespace shardproof
