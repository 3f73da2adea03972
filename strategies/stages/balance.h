// Balance: cuts a chain of layers so that the slowest stage is as fast as possible.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stratagem::stages {

/// Returns the boundaries b1 < b2 < ... that cut `costs` into `stages` non-empty runs with the
/// smallest largest sum; of equal ones, the earliest cuts. Dynamic programme, O(stages x layers^2).
/// Throws std::invalid_argument if there are fewer layers than stages.
std::vector<std::size_t> balance(std::span<const double> costs, int stages);

}  // namespace stratagem::stages
