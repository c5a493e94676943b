#pragma once

#include <utility>

#include "engine/cost/paper/comparison.h"
#include "engine/cost/paper/published.h"
#include "engine/cost/work/efficiency.h"

namespace shardproof::cost {

/// Each makes a row of what is printed and of what the model has. A row that does not hold is
/// `unexplained` where `why` is given, and else `failed`.

/// The very number.
ComparedRow exact_row(std::string what, Printed published, double ours);
/// A number that rounds to what is printed.
ComparedRow rounded_row(std::string what, Printed published, double ours);
/// The same of a number that was made of another printed one, which may be anything that rounds to
/// it: `least` to `most`.
ComparedRow rounded_row(std::string what, Printed published, double ours, double least,
                        double most);
/// A number within 2 %.
ComparedRow percent_row(std::string what, Printed published, double ours);
/// An estimate, near where it is no farther off than the fit's worst point that was left out.
ComparedRow estimate_row(std::string what, Printed published, double ours, std::string why = "");
/// A choice or an order.
ComparedRow choice_row(std::string what, std::string published, std::string ours,
                       std::string why = "");

/// "540B low-latency prefill".
std::string column_name(const MeasuredPass& pass);

/// A name and its number.
using Named = std::pair<std::string_view, double>;
/// The name of the lesser number, the first of two that are equal.
std::string lesser(Named a, Named b);

/// The sections by themselves, with estimates by these constants.
ComparedSection compared_table_1(const Efficiency& efficiency);
ComparedSection compared_figure_3(const Efficiency& efficiency);
ComparedSection compared_optima(const Efficiency& efficiency);
ComparedSection compared_parameters(const Efficiency& efficiency);
ComparedSection compared_mfu(const Efficiency& efficiency);
ComparedSection compared_cost(const Efficiency& efficiency);
ComparedSection compared_times(const Efficiency& efficiency);
ComparedSection compared_volumes(const Efficiency& efficiency);
ComparedSection compared_layouts(const Efficiency& efficiency);
ComparedSection compared_figure_6(const Efficiency& efficiency);
ComparedSection compared_figure_7(const Efficiency& efficiency);
ComparedSection compared_figure_8(const Efficiency& efficiency);
ComparedSection compared_serial(const Efficiency& efficiency);

}  // namespace shardproof::cost
