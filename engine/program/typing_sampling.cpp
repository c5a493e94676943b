// Typing of the ops that choose a token: greedy and random.
#include "engine/program/detail/typing_rules.h"
#include "weights/model/sampling.h"

namespace shardproof::typing {

Types local_argmax(const Rules& rules, const Type& z, const Torus& torus) {
  rules.letters(2, 0, "BV");
  const Layout layout({z.layout.dims()[0], {'C', z.layout.axes('V')}}, Axes());
  const Shape shape{z.shape[0], torus.size(z.layout.axes('V'))};
  return {{layout, shape, false}, {layout, shape, true}};
}

Types argmax(const Rules& rules, const Type& value) {
  rules.letters(2, 0, "BC");
  rules.letters(2, 1, "BC");
  rules.require(rules.arg(1).integer, 2, "indices are int32 BC, not {}", rules.full(1));
  rules.unsharded(3, 0, "C");
  rules.aligned(4, 0, 1);
  return {{Layout({value.layout.dims()[0]}, Axes()), {value.shape[0]}, true}};
}

Types weigh(const Rules& rules, const Type& z) {
  rules.letters(2, 0, "BV");
  rules.letters(2, 1, "BC");
  rules.unsharded(3, 1, "C");
  rules.aligned(4, 0, 1);
  return {z};
}

Types search(const Rules& rules, const Type& e, const Axes& axes, std::int64_t words) {
  rules.letters(2, 0, "BV");
  rules.require(!axes.empty() && axes == e.layout.axes('V'), 3,
                "the axes are {}, those of V in {} are expected", axes, rules.text(0));
  const Layout::Dim B = e.layout.dims()[0];
  return {{Layout({B, {'W', Axes()}}, Axes()), {e.shape[0], words}, true},
          {Layout({B}, Axes()), {e.shape[0]}, false},
          e};
}

Types masses(const Rules& rules, const Type& e, const Torus& torus) {
  rules.letters(2, 0, "BV");
  const Axes axes = e.layout.axes('V');
  return {{Layout({e.layout.dims()[0], {'C', axes}, {'W', Axes()}}, Axes()),
           {e.shape[0], torus.size(axes), kSumWords},
           true}};
}

Types draw(const Rules& rules, const Type& e, const Type& masses, const Torus& torus) {
  rules.letters(2, 0, "BV");
  rules.letters(2, 1, "BCW");
  rules.require(masses.integer, 2, "masses are int32 BCW, not {}", rules.full(1));
  rules.unsharded(3, 1, "CW");
  rules.aligned(4, 0, 1);
  const Axes axes = e.layout.axes('V');
  const std::int64_t blocks = torus.size(axes);
  rules.require(masses.shape[1] == blocks && masses.shape[2] == kSumWords, 5,
                "{} has {} masses of {} words where {} has {} blocks; a mass has {}", rules.text(1),
                masses.shape[1], masses.shape[2], rules.text(0), blocks, kSumWords);
  const Layout layout({e.layout.dims()[0], {'C', axes}}, Axes());
  const Shape shape{e.shape[0], blocks};
  return {{layout, shape, false}, {layout, shape, true}};
}

}  // namespace shardproof::typing
