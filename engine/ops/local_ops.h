#pragma once

#include <string_view>

#include "engine/numeric/threads.h"
#include "engine/ops/partial_values.h"
#include "engine/ops/row_tokens.h"
#include "engine/shards/sharded.h"
#include "weights/base/error.h"
#include "weights/model/model_config.h"
#include "weights/model/numerics.h"

namespace shardproof {

// Ops that each chip does alone on its own shards. Operands are complete f32 unless said otherwise;
// shapes are in the paper's letters, X standing for any other dims. The formulas and their rounding
// points are docs/spec.md section 2. The typing rules are checked before, by program/typing.h;
// these functions rely on local shapes only. Operands of the field regime are field elements in
// place of f32; the formulas are then those of docs/field.md section 1.3, and where an element
// needs an inverse that it has not Error("field_zero", ...) is thrown.

/// Norm of x [XE] with ss = S(x,x) [X] and gains g [E]: r = 1/sqrt((double)ss/E + eps), E the
/// logical extent; (float)((x·r)·g), or (float)((x·r)·g + b) with a bias b [E]. In a layernorm x is
/// centered.
Sharded norm(const Sharded& x, const Sharded& ss, const Sharded& g, const Sharded* b, double eps,
             Threads& threads);

/// Which channels of a head rotate together: j and j+J, or 2j and 2j+1, J pairs in all.
enum class RopePairs { half_split, interleaved };
/// Rotation of t [BLHQ] or [BLKQ] at positions pos [BL] (int32) by the tables cos, sin [PJ];
/// channels after the first 2J pass. Throws Error("rope_range", ...) on a position the table does
/// not have.
Sharded rope(RopePairs pairs, const Sharded& t, const Sharded& pos, const Sharded& cos,
             const Sharded& sin, Threads& threads);

/// (float)((double)t/n): a mean from a sum.
Sharded divide_by(const Sharded& t, double n, Threads& threads);
/// (float)((double)t·(double)s) with a scalar s; in the field regime, where s is not 1, times the
/// constant of this name.
Sharded scale_by(const Sharded& t, float s, Threads& threads, std::string_view name = "");
/// (float)((double)t·(double)s) where s has some of t's dims: a per-channel scale.
Sharded scale(const Sharded& t, const Sharded& s, Threads& threads);
/// t + b1 + b2 + ... in f32, left to right, where each b has some of t's dims.
Sharded bias(const Sharded& t, const std::vector<const Sharded*>& b, Threads& threads);
/// t − mu in f32 where mu has some of t's dims.
Sharded center(const Sharded& t, const Sharded& mu, Threads& threads);
/// a + b in f32, element by element.
Sharded add(const Sharded& a, const Sharded& b, Threads& threads);
/// (float)(g/(1+exp(−g))) · u in f32, element by element; in a base-2 model of 2g in place of g.
Sharded swiglu(const Sharded& g, const Sharded& u, Threads& threads,
               Softmax softmax = Softmax::base_e);
/// gelu(g) · u in f32, gelu in its tanh form.
Sharded geglu(const Sharded& g, const Sharded& u, Threads& threads);
Sharded gelu(const Sharded& g, Threads& threads);
/// gelu by the error function.
Sharded gelu_erf(const Sharded& g, Threads& threads);
/// st(t) for act=bf16: to bf16, nearest even.
Sharded store(const Sharded& t, Threads& threads);

/// The cache [BMKQ] grown by L slots, with the rows of t [BLKQ] written at slots pos [BL], rounded
/// to bf16 if the cache is of bf16; slots that nothing wrote hold NaN, and padding is not written.
/// Of rows that go on from prefixes of `prefix` positions slot 0 is the position behind them.
/// Throws Error("append_range", ...) on a slot outside the grown cache.
Sharded append(const Sharded& cache, const Sharded& t, const Sharded& pos, Threads& threads,
               CacheType kept = CacheType::as_act, const RowTokens* rows = nullptr,
               std::int64_t prefix = 0);

/// What attention returns: score [BLHM], max [BLH], exp [BLHM], denom [BLH], attn [BLHQ].
struct Attention {
  Sharded score, max, exp, denom, attn;
};
/// Causal attention of q [BLHQ] over the caches k, v [BMKQ], key m visible iff m ≤ pos and, where
/// rows have padding, m is before the end of the row's tokens. Query head
/// h reads kv head ⌊h·K/H⌋. Masked scores and exps hold +0. In the f32 regime S is the f32 fma
/// chain over Q, or over the visible keys ascending. With ALiBi slopes [H], slope·(m − pos) is
/// added to the scaled score in f64. In a base-2 model nothing scales the score, and exp is 2^x.
Attention attend(const Sharded& q, const Sharded& k, const Sharded& v, const Sharded& pos,
                 Threads& threads, Regime regime = Regime::exact, const Sharded* slopes = nullptr,
                 const RowTokens* rows = nullptr, Softmax softmax = Softmax::base_e);

/// The caches of prefixes [NTKQ]: row i of a batch of B goes on from prefix ⌊i·N/B⌋.
struct PrefixCaches {
  const Sharded& k;
  const Sharded& v;
};
/// The same where the first T keys and values of a row are those of its prefix and k, v hold what
/// follows, slot m position T + m: what attend returns of the two caches put together, row by row,
/// without putting them together. Scores and exps are [BLHM] with M = T + slots of k.
Attention attend_prefix(const Sharded& q, const Sharded& k, const Sharded& v,
                        const PrefixCaches& prefix, const Sharded& pos, Threads& threads,
                        Regime regime = Regime::exact, const Sharded* slopes = nullptr,
                        const RowTokens* rows = nullptr, Softmax softmax = Softmax::base_e);

/// Rows of the table U [VE] for ids [BL] (int32); a chip returns 0 for ids of other chips' blocks,
/// so the result [BLE] is partial over V's axes. Throws Error("embed_range", ...) on an id the
/// table does not have. Of a table that is padded the first `V` rows alone are the vocabulary's;
/// here and below 0 stands for all of them. In the exact regime, with values = may_be_unmade, the
/// reduction that reads the partial sums computes them (Partial::unmade).
Sharded embed_lookup(const Sharded& ids, const std::shared_ptr<const Sharded>& table,
                     const Layout& layout, Threads& threads, Regime regime = Regime::exact,
                     std::int64_t V = 0, PartialValues values = PartialValues::made);

/// The best logit of each chip's block of z [BV] and its global index: value and index [BC], C one
/// candidate a block, with V's axes. The first of equals wins. Ids from `V` on are padding and take
/// no part; a block of nothing else has the largest f32 and −1 (in the field regime 1 and 1), which
/// nobody can take for a candidate unnoticed.
struct Candidates {
  Sharded value, index;
};
Candidates local_argmax(const Sharded& z, Threads& threads, std::int64_t V = 0);
/// The index [B] of the best candidate, the first of equals; candidates are in vocabulary order.
/// `width` is how many ids a block has, padded ones included: the field regime, where each
/// candidate is a hash of its block's logits, needs to know, and where ids from `V` on are padding,
/// how many blocks have an id.
Sharded argmax(const Sharded& value, const Sharded& index, Threads& threads, std::int64_t width = 0,
               std::int64_t V = 0);

}  // namespace shardproof
