// The numbers of a training that are not finite, for the message that ends it.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "strategies/strategy.h"

namespace stratagem::training {

/// Returns the first parameter, buffer or gradient that is not finite and the number of others: ";
/// not finite: NAME and 3 more"; empty if all are finite. Each rank checks its own pieces, and
/// `sum_over_ranks` sums over the ranks; it is empty for one rank. Collective.
std::string not_finite_entries(const models::Workload& workload, strategies::Strategy& strategy,
                               const std::function<void(std::span<double>)>& sum_over_ranks);

}  // namespace stratagem::training
