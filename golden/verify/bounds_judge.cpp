#include "golden/verify/bounds_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "golden/bounds/op/scan.h"
#include "golden/compare/assembled.h"
#include "golden/compare/comparison.h"
#include "golden/compare/reach_meter.h"
#include "golden/compare/row_padding.h"
#include "golden/scalar/model.h"
#include "weights/base/detail/index.h"

namespace shardproof {
namespace {

using bounds::Interval;
using scalar::Value;

/// Returns what the chips hold, by part; nothing unless it is an f32-regime value of the layout.
std::optional<Value> as_held(const Layout& layout, const Sharded& value) {
  const Torus& torus = value.torus();
  if (value.holds_partial() || !judged_divides(layout, value.shape(), torus)) return std::nullopt;
  Value held{layout, value.shape(), {}, {}};
  const auto block = at(element_count(judged_block(layout, held.shape, torus)));
  for (int chip = 0; chip < torus.chips(); ++chip)
    if ((value.stores_int32() ? value.i32()[at(chip)].size() : value.f32()[at(chip)].size()) !=
        block)
      return std::nullopt;
  if (value.stores_int32()) {
    held.ints = assembled<std::int32_t>(
        layout, held.shape, torus, [&](int chip) -> const auto& { return value.i32()[at(chip)]; });
    return held;
  }
  const Buffer<float> none;
  scalar::for_each_place(layout.partial(), torus, [&](const scalar::Place&) {
    const std::size_t part = held.parts.size();
    held.parts.push_back(
        assembled<float>(layout, held.shape, torus, [&](int chip) -> const Buffer<float>& {
          return judged_part(layout, torus, chip) == part ? value.f32()[at(chip)] : none;
        }));
  });
  return held;
}

/// The first element on any chip for which `wrong(part, global element, value)` returns true.
struct Outside {
  int chip;
  std::size_t part;
  std::int64_t element;
};
template <class T, class Wrong>
std::optional<Outside> first_outside(const Layout& layout, const Shape& shape, const Torus& torus,
                                     const ChipArrays<T>& chips, Wrong&& wrong) {
  for (int chip = 0; chip < torus.chips(); ++chip) {
    const std::size_t part = judged_part(layout, torus, chip);
    std::optional<Outside> found;
    judged_elements(layout, shape, torus, chip, [&](std::int64_t local, std::int64_t global) {
      if (!wrong(part, at(global), chips[at(chip)][at(local)])) return false;
      found = Outside{chip, part, global};
      return true;
    });
    if (found) return found;
  }
  return std::nullopt;
}

/// Returns true if every chip holds its block of the assembled value, bit for bit, except padding.
bool same_on_all_chips(const Layout& layout, const Sharded& value, const Value& held,
                       const std::vector<bool>& padding, Threads& threads) {
  const ExpectedBits whole{.shape = held.shape,
                           .bits = held.integer() ? Words<std::uint32_t>::of(held.ints)
                                                  : Words<std::uint32_t>::of_parts(held.parts),
                           .integer = held.integer(),
                           .padding = padding};
  return !compare(whole, layout, value, threads).mismatch;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
bool same_bits(const Value& a, const Value& b) {
  return same_bits(a.ints, b.ints) &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const auto& of_a, const auto& of_b) { return same_bits(of_a, of_b); });
}

bool same_size(const bounds::Bounds& of, const Value& held) {
  return std::equal(of.parts.begin(), of.parts.end(), held.parts.begin(), held.parts.end(),
                    [](const auto& a, const auto& b) { return a.size() == b.size(); });
}

}  // namespace

BoundsJudge::BoundsJudge(const RunPlan& plan, Findings& findings)
    : plan_(plan), findings_(findings) {}

void BoundsJudge::enter(const Scope& scope, const Program& program) {
  const std::string now = fmt::format("{} {} {}", scope.pass, program.name, scope.layer);
  if (now == program_) return;
  program_ = now;
  values_.clear();
  while (pass_.name != scope.pass && next_ < plan_.passes.size()) pass_ = plan_.passes.at(next_++);
}

void BoundsJudge::observe(const Scope& scope, const Program& program, const Op* op,
                          const ValueDecl& declared, const Sharded& value) {
  enter(scope, program);
  std::optional<Value> held = as_held(declared.layout, value);
  Finding found;
  found.pass = scope.pass;
  found.step = scope.step(program, declared.name);
  found.where = program.where(declared.line);
  found.checkpoint = "the bounds of " + declared.role.to_string();
  found.op = op != nullptr ? op->to_string() : "input";
  if (!held) {
    found.expected = "f32 or int32 of the layout " + declared.layout.to_string();
    found.actual = "other data";
    return findings_.add(std::move(found));
  }
  if (op == nullptr) {
    values_[declared.name] = std::move(*held);
    return;
  }
  std::vector<const Value*> args, results;
  // Values rejected above as other data are missing, and so are values computed from them.
  const auto known = [&](const std::string& name) {
    const auto at_name = values_.find(name);
    return at_name == values_.end() ? nullptr : &at_name->second;
  };
  for (const std::string& name : op->args) args.push_back(known(name));
  std::size_t result = 0;
  while (op->results.at(result).name != declared.name)
    results.push_back(known(op->results[result++].name));
  for (const auto* all : {&args, &results})
    if (std::find(all->begin(), all->end(), nullptr) != all->end()) return;
  scalar::Setting setting = setting_of(plan_, pass_, *op);
  setting.threads = threads_;
  const bounds::Allowed allowed = bounds::allowed(*op, result, args, results, setting);

  const std::vector<bool> padding =
      row_padding(declared.role, held->shape, RowsOfPass(pass_), scope.rows);
  const auto judged = [&](std::size_t i) { return padding.empty() || !padding[i]; };
  std::optional<Outside> outside;
  const Torus& torus = value.torus();
  const auto same_everywhere = [&] {
    return same_on_all_chips(declared.layout, value, *held, padding, setting.by());
  };
  const auto element = [&](std::uint32_t bits) { return element_text(bits, held->integer()); };
  if (allowed.bits) {
    const Value& bits = *allowed.bits;
    held->ring_dim = bits.ring_dim, held->ring = bits.ring, held->loop = bits.loop;
    if (bits.shape != held->shape || bits.integer() != held->integer()) {
      found.expected = "another shape or type";
      found.actual = fmt::format("{} elements", element_count(held->shape));
      return findings_.add(std::move(found));
    }
    const bool same = same_bits(bits, *held) && same_everywhere();
    if (!same && held->integer()) {
      outside = first_outside(declared.layout, held->shape, torus, value.i32(),
                              [&](std::size_t, std::size_t i, std::int32_t v) {
                                return judged(i) && v != bits.ints[i];
                              });
      if (outside) found.expected = fmt::format("{}", bits.ints[at(outside->element)]);
    } else if (!same) {
      outside =
          first_outside(declared.layout, held->shape, torus, value.f32(),
                        [&](std::size_t part, std::size_t i, float v) {
                          return judged(i) && std::bit_cast<std::uint32_t>(v) !=
                                                  std::bit_cast<std::uint32_t>(bits.parts[part][i]);
                        });
      if (outside)
        found.expected =
            element(std::bit_cast<std::uint32_t>(bits.parts[outside->part][at(outside->element)]));
    }
    if (!outside) tightness_.add(found.step, bounds::Kind::one_value, {}, 0.0);
  } else {
    if (!same_size(allowed.bounds, *held)) {
      found.expected = "another shape";
      found.actual = fmt::format("{} elements", element_count(held->shape));
      return findings_.add(std::move(found));
    }
    const auto wrong = [&](std::size_t part, std::size_t i, float v) {
      return judged(i) && !bounds::allows(allowed.bounds, part, i, v);
    };
    // Usually every chip matches the assembled value, so that each element is checked once.
    const bounds::Scan scan = bounds::scan(allowed.bounds, *held, padding, setting.by());
    if (!same_everywhere() || scan.outside)
      outside = first_outside(declared.layout, held->shape, torus, value.f32(), wrong);
    if (outside) {
      const std::size_t i = at(outside->element);
      const Interval in =
          bounds::values(allowed.bounds.parts[outside->part][i], allowed.bounds.format);
      found.expected =
          fmt::format("in [{}, {}]", static_cast<float>(in.low), static_cast<float>(in.high));
    } else {
      bounds::Slack slack;
      if (scan.worst) {
        const auto [part, i] = *scan.worst;
        slack.see(allowed.bounds.parts[part][i], allowed.bounds.format,
                  static_cast<double>(held->parts[part][i]));
      }
      const double count =
          static_cast<double>(held->parts.size()) * static_cast<double>(element_count(held->shape));
      tightness_.add(found.step, allowed.bounds.kind,
                     {.worst = scan.reach,
                      .likely = scan.reach,
                      .found = scan.error,
                      .scale = std::sqrt(scan.squares / std::max(count, 1.0))},
                     slack.slack());
    }
  }
  if (outside) {
    found.chip = torus.name(outside->chip);
    found.index = global_index(held->shape, outside->element);
    std::uint32_t bits = 0;
    judged_elements(
        declared.layout, held->shape, torus, outside->chip,
        [&](std::int64_t local, std::int64_t global) {
          if (global != outside->element) return false;
          bits = held->integer()
                     ? static_cast<std::uint32_t>(value.i32()[at(outside->chip)][at(local)])
                     : std::bit_cast<std::uint32_t>(value.f32()[at(outside->chip)][at(local)]);
          return true;
        });
    found.actual = element(bits);
    findings_.add(std::move(found));
  }
  values_[declared.name] = std::move(*held);
}

}  // namespace shardproof
