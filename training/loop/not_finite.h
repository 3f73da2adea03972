// Which numbers of a training are not finite, for the message that ends it.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "strategies/strategy.h"

namespace stratagem::training {

/// The first of the parameters, buffers and gradients that is not finite and how many others are
/// not: "; not finite: NAME and 3 more". Empty: all are finite. Each rank looks at its own pieces,
/// and `sum_over_ranks` adds up numbers over the ranks; empty: there is one. Collective.
std::string not_finite_entries(const models::Workload& workload, strategies::Strategy& strategy,
                               const std::function<void(std::span<double>)>& sum_over_ranks);

}  // namespace stratagem::training
