// The name of a row: the options that distinguish it, in one order for every file and filter.
//
//   pipeline/resnet50/devices:2/batch:48/image:128/split:12/schedule:1f1b
//   single/resnet50/devices:1/batch:48/image:128/cores:2
#pragma once

#include <string>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"

namespace stratagem::bench {

/// Returns strategy, model, devices, batch, image, split and schedule if the row has them, then
/// every other used option that is not the default, in the table's order; cores last. How a row is
/// measured (steps, repetitions, order, timeout, verify) is not part of its name.
std::string row_name(const Config& config, const Catalogue& catalogue);

/// Returns the name of what a row computes, regardless of its strategy:
/// "resnet50/batch:48/dtype:float32/...". Only rows of one workload are compared. It has the model,
/// the batch and the options of work (is_of_work) that the row uses, most of them only if they are
/// not the default.
std::string workload_name(const Config& config, const Catalogue& catalogue);

}  // namespace stratagem::bench
