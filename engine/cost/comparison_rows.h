#pragma once

#include "engine/cost/comparison.h"
#include "engine/cost/published.h"

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

/// "a < b < c" of the names by their numbers, least first.
std::string ascending(std::vector<std::pair<std::string, double>> named);

/// The sections by themselves.
ComparedSection compared_table_1();
ComparedSection compared_figure_3();
ComparedSection compared_optima();
ComparedSection compared_parameters();
ComparedSection compared_mfu();
ComparedSection compared_times();
ComparedSection compared_layouts();
ComparedSection compared_figure_6();
ComparedSection compared_figure_7();
ComparedSection compared_figure_8();
ComparedSection compared_serial();

}  // namespace shardproof::cost
