#pragma once

#include <optional>
#include <string_view>

#include "engine/numeric/threads.h"
#include "engine/ops/partial_sums.h"
#include "engine/ops/row_tokens.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

// Ops that each chip performs alone on its own shards. Operands are complete f32 unless stated
// otherwise; shapes are in the paper's letters, X standing for any other dims. Formulas and
// rounding points: docs/spec.md section 2. program/typing.h checks the typing rules first; these
// functions rely on local shapes only. In the field regime operands are field elements in place of
// f32 and the formulas are those of docs/field.md section 1.3; these throw Error("field_zero", ...)
// where an element needs an inverse it does not have.

/// Norm of x [XE] with ss = S(x,x) [X] and gains g [E]: r = 1/sqrt((double)ss/E + eps), E the
/// logical extent; (float)((x·r)·g), or (float)((x·r)·g + b) with a bias b [E]. In a layernorm x is
/// centered.
Sharded norm(const Sharded& x, const Sharded& ss, const Sharded& g, const Sharded* b, double eps,
             Threads& threads);

/// J pairs of a head's channels rotate: half_split pairs j with j+J, interleaved 2j with 2j+1.
enum class RopePairs { half_split, interleaved };
/// Rotates t [BLHQ] or [BLKQ] at positions pos [BL] (int32) by the tables cos, sin [PJ]; channels
/// after the first 2J are unchanged. Throws Error("rope_range", ...) on a position not in the
/// table.
Sharded rope(RopePairs pairs, const Sharded& t, const Sharded& pos, const Sharded& cos,
             const Sharded& sin, Threads& threads);

/// (float)((double)t/n): a mean from a sum.
Sharded divide_by(const Sharded& t, double n, Threads& threads);
/// (float)((double)t·(double)s) with a scalar s. In the field regime, unless s is 1, multiplies by
/// the constant called `name`.
Sharded scale_by(const Sharded& t, float s, Threads& threads, std::string_view name = "");
/// (float)((double)t·(double)s), a per-channel scale: s has some of t's dims.
Sharded scale(const Sharded& t, const Sharded& s, Threads& threads);
/// t + b1 + b2 + ... in f32, left to right; each b has some of t's dims.
Sharded bias(const Sharded& t, const std::vector<const Sharded*>& b, Threads& threads);
/// t − mu in f32; mu has some of t's dims.
Sharded center(const Sharded& t, const Sharded& mu, Threads& threads);
/// a + b in f32, element by element.
Sharded add(const Sharded& a, const Sharded& b, Threads& threads);
/// (float)(g/(1+exp(−g))) · u in f32, element by element; a base-2 model uses 2g in place of g.
Sharded swiglu(const Sharded& g, const Sharded& u, Threads& threads,
               Softmax softmax = Softmax::base_e);
/// gelu(g) · u in f32, gelu in its tanh form.
Sharded geglu(const Sharded& g, const Sharded& u, Threads& threads);
Sharded gelu(const Sharded& g, Threads& threads);
/// gelu(g) in its error-function form.
Sharded gelu_erf(const Sharded& g, Threads& threads);
/// st(t) for act=bf16: rounds to bf16, nearest even.
Sharded store(const Sharded& t, Threads& threads);

/// Grows the cache [BMKQ] by L slots and writes the rows of t [BLKQ] at slots pos [BL], rounded to
/// bf16 if the cache is bf16; t may have any dims with B and L, and the cache the same with M for
/// L. Unwritten slots hold NaN, or +0 with `zeros`; padding is not written. For rows that
/// continue prefixes of `prefix` positions, slot 0 is the position after the prefix. Throws
/// Error("append_range", ...) on a slot outside the grown cache.
Sharded append(const Sharded& cache, const Sharded& t, const Sharded& pos, Threads& threads,
               std::optional<NumberFormat> kept = std::nullopt, const RowTokens* rows = nullptr,
               std::int64_t prefix = 0, bool zeros = false);

/// Results of attention: score [BLHM], max [BLH], exp [BLHM], denom [BLH], attn [BLHQ].
struct Attention {
  Sharded score, max, exp, denom, attn;
};
/// Causal attention of q [BLHQ] over the caches k, v [BMKQ]: key m is visible iff m ≤ pos and,
/// where rows have padding, m precedes the end of the row's tokens. Query head h reads kv head
/// ⌊h·K/H⌋. Masked scores and exps hold +0. In the f32 regime S is the f32 fma chain over Q, or
/// over the visible keys ascending. With ALiBi slopes [H], slope·(m − pos) is added to the scaled
/// score in f64. In a base-2 model the score is not scaled, and exp is 2^x.
Attention attend(const Sharded& q, const Sharded& k, const Sharded& v, const Sharded& pos,
                 Threads& threads, Regime regime = Regime::exact, const Sharded* slopes = nullptr,
                 const RowTokens* rows = nullptr, Softmax softmax = Softmax::base_e);

/// The caches of prefixes [NTKQ]: row i of a batch of B continues prefix ⌊i·N/B⌋.
struct PrefixCaches {
  const Sharded& k;
  const Sharded& v;
};
/// Causal attention, as attend(), over two caches per row: the first T keys and values are the
/// prefix's, and slot m of k, v is position T + m. Equals attend() on the two caches concatenated
/// row by row, without concatenating them. Scores and exps are [BLHM] with M = T + slots of k.
Attention attend_prefix(const Sharded& q, const Sharded& k, const Sharded& v,
                        const PrefixCaches& prefix, const Sharded& pos, Threads& threads,
                        Regime regime = Regime::exact, const Sharded* slopes = nullptr,
                        const RowTokens* rows = nullptr, Softmax softmax = Softmax::base_e);

/// Rows of the table U [VE] for ids [BL] (int32). A chip returns 0 for ids in other chips' blocks,
/// so the result [BLE] is partial over V's axes. Throws Error("embed_range", ...) on an id outside
/// the table. In a padded table only the first `V` rows are the vocabulary's; V = 0 means all rows,
/// here and below. In the exact regime, with values = allow_lazy, the reduction that reads the
/// partial sums computes them (Partial::lazy).
Sharded embed_lookup(const Sharded& ids, const std::shared_ptr<const Sharded>& table,
                     const Layout& layout, Threads& threads, Regime regime = Regime::exact,
                     std::int64_t V = 0, PartialSums values = PartialSums::materialize);

/// The best logit of each chip's block of z [BV] and its global index: value and index [BC], one
/// candidate C per block, sharded over V's axes. The first of equals wins. Ids from `V` on are
/// padding and are ignored. A block of padding only returns the largest f32 and −1 (in the field
/// regime 1 and 1), so that using it as a candidate is detected.
struct Candidates {
  Sharded value, index;
};
Candidates local_argmax(const Sharded& z, Threads& threads, std::int64_t V = 0);
/// The index [B] of the best candidate, the first of equals; candidates are in vocabulary order.
/// `width` is the number of ids in a block, padding included. It is needed in the field regime,
/// where a candidate is a hash of its block's logits, and where ids from `V` on are padding, to
/// tell how many blocks have an id.
Sharded argmax(const Sharded& value, const Sharded& index, Threads& threads, std::int64_t width = 0,
               std::int64_t V = 0);

}  // namespace shardproof
