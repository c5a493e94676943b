#pragma once

#include <utility>

#include "engine/cost/paper/comparison.h"
#include "engine/cost/paper/published.h"
#include "engine/cost/work/efficiency.h"

namespace shardproof::cost {

/// Each function makes a row of a published number and the model's. A row that does not hold is
/// `unexplained` if `why` is given, otherwise `failed`.

/// The two numbers must be equal.
ComparedRow exact_row(std::string what, Printed published, double ours);
/// The model's number must round to the printed one.
ComparedRow rounded_row(std::string what, Printed published, double ours);
/// The model's number was derived from another printed one, known only to its last digit, so it
/// ranges from `least` to `most`; some number in that range must round to the printed one.
ComparedRow rounded_row(std::string what, Printed published, double ours, double least,
                        double most);
/// The model's number must be within 2 % of the printed one.
ComparedRow percent_row(std::string what, Printed published, double ours);
/// An estimate; `near` if its deviation is at most that of the fit's worst left-out point.
ComparedRow estimate_row(std::string what, Printed published, double ours, std::string why = "");
/// A choice or an order must be the same.
ComparedRow choice_row(std::string what, std::string published, std::string ours,
                       std::string why = "");

/// Returns for example "540B low-latency prefill".
std::string column_name(const MeasuredPass& pass);

/// A name and its number.
using Named = std::pair<std::string_view, double>;
/// Returns the name of the lesser number, the first if both are equal.
std::string lesser(Named a, Named b);

/// One function for each section of the report; estimates use the given constants.
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
