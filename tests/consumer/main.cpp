// What somebody else does with the library: one case under the judge, and a property of their own.
#include <dlfcn.h>
#include <rapidcheck.h>

#include <cstdio>
#include <string>
#include <utility>

#include "engine/collectives/collectives.h"
#include "engine/collectives/faults.h"
#include "engine/numeric/cpu.h"
#include "golden/cases/any_case.h"
#include "golden/verify/verify.h"
#include "weights/base/error.h"

namespace {

using namespace shardproof;

bool one_case_is_equal() {
  OracleMemo memo;
  const Case c = parse_case(
      "torus=3x1x2 model=palm-tiny prefill=wg-xyz:batch decode=ws2d:batch batch=6 prompt=3 gen=2");
  const Judgement judgement = verify_case(c, memo);
  std::printf("%s: %s, %lld values\n", print_case(c).c_str(),
              std::string(to_string(judgement.verdict)).c_str(),
              static_cast<long long>(judgement.tensors));
  return judgement.verdict == Verdict::equal && judgement.tensors > 0;
}

bool a_lost_collective_is_seen() {
  OracleMemo memo;
  VerifyOptions options;
  options.faults.plan = [](const Scope& scope, const Program& program, const Op& op, Moves& plan) {
    if (scope.pass == "decode.1" && program.name == "layer" && op.kind == OpKind::reduce_scatter)
      plan = without_transfer(std::move(plan));
  };
  const Judgement judgement =
      verify_case(parse_case("torus=2x3x1 prefill=ws2d:heads"), memo, options);
  std::printf("%s\n", judgement.explanation().c_str());
  return judgement.verdict == Verdict::different;
}

bool a_bad_case_is_one_error() {
  try {
    parse_case("torus=2x2x2 prefil=ws2d:heads");
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return true;
  }
  return false;
}

/// The whole library through one function of a shared library, loaded as an interpreter loads it.
bool a_shared_library_judges() {
  void* const library = ::dlopen(BINDINGS, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", ::dlerror());
    return false;
  }
  using VerdictOf = const char*(const char*);
  auto* const verdict_of = reinterpret_cast<VerdictOf*>(::dlsym(library, "verdict_of"));
  const std::string equal = verdict_of("torus=1x2x3 batch=6 prompt=2 gen=2 prefill=ws2d:batch");
  const std::string illegal = verdict_of("torus=5x1x1");
  std::printf("%s: %s\n", equal.c_str(), illegal.c_str());
  return equal == "equal" && illegal.starts_with("strategy_c3: ");
}

// A random case; one that fails is shrunk and printed as the command that reproduces it.
void any_case_is_equal() {
  const Case c = *any_case();
  OracleMemo memo;
  RC_ASSERT(verify_case(c, memo).verdict == Verdict::equal);
}

// A slice takes blocks of a replicated dim; an all_gather of the same axes brings them back.
void gather_undoes_slice() {
  const auto size = [] { return *rc::gen::element(1, 2, 3, 5); };
  const Torus torus(size(), size(), size());
  const auto [whole_text, cut_text] =
      *rc::gen::element(std::pair{"BL_yE", "B_xL_yE"}, std::pair{"BLE", "BLE_zyx"},
                        std::pair{"BL_xE", "BL_xE_yz"}, std::pair{"B_zLE", "B_zyxLE"});
  const Layout whole = Layout::parse(whole_text), cut = Layout::parse(cut_text);
  RC_ASSERT(Layout::parse(whole.to_string()) == whole);

  const std::int64_t n = torus.chips();
  Tensor tensor(Shape{n, n, 2 * n});
  for (float& value : tensor.data) value = static_cast<float>(*rc::gen::arbitrary<std::int16_t>());
  const Sharded before = shard(tensor, whole, torus);

  std::size_t dim = 0;
  while (whole.dims()[dim].axes == cut.dims()[dim].axes) ++dim;
  Axes taken;
  for (Axis axis : cut.dims()[dim].axes)
    if (!whole.dims()[dim].axes.has(axis)) taken = taken.with(axis);

  Threads threads(2);
  const Sharded sliced = slice(before, whole.dims()[dim].letter, taken, threads);
  RC_ASSERT(sliced.layout() == cut && sliced.local() == local_shape(cut, before.shape(), torus));
  const Sharded after = all_gather(sliced, whole.dims()[dim].letter, taken, threads);
  RC_ASSERT(after.layout() == whole);
  RC_ASSERT(after.f32() == before.f32());
}

}  // namespace

int main() {
  if (const char* missing = missing_cpu_feature()) {
    std::printf("the libraries were compiled for a processor with %s\n", missing);
    return 2;
  }
  const bool held = one_case_is_equal() && a_lost_collective_is_seen() &&
                    a_bad_case_is_one_error() && a_shared_library_judges() &&
                    rc::check("every case is equal to the unsharded model", any_case_is_equal) &&
                    rc::check("all_gather after slice is the identity", gather_undoes_slice);
  return held ? 0 : 1;
}
