#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/run/case.h"

namespace shardproof::cases {

/// Returns the lines that a text of products stands for, in order. Each line of the text is one of
///
///     @tori = 2x2x2|4x2x3        a word for what follows it; @all is every shipped strategy,
///                                @usual those that decode and run parallel blocks
///     torus={@tori} gen={2|3}    every alternative in braces: the first braces change last
///     act=(f32|bf16)/2           one alternative in turn, which changes with every 2nd line that
///                                results (without /2 with every one)
///     turn=5 ...                 where the turns of this line begin, otherwise at 0
///       seed=1                   indented: goes on from the last line that is not, and takes part
///                                in its turns; a line that is gone on from is none of its own
///     batch=2 \                  goes on in the next line
///     # what follows             a comment
std::vector<std::string> lines_of(std::string_view text);

/// Returns the cases that a text of products stands for. Beside the keys of a case line
/// (engine/run/case.h) there are
///
///     strategy=ws2d:heads        prefill and decode; a strategy that does not decode hands over to
///                                ws2d:heads, one without parallel blocks gets block=serial
///     prompt=7//3L+1             the latter if the strategy does not decode, where L is its
///                                smallest length on the torus
///     act=                       left out
///
/// A line that names one strategy as prefill and as decode is left out. Throws what parse_case
/// throws.
std::vector<Case> cases_of(std::string_view text);

}  // namespace shardproof::cases
