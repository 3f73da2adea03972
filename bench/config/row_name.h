// The name of a row: what sets it apart, in a fixed order, the same in every file and filter.
//
//   pipeline/resnet50/devices:2/batch:48/image:128/split:12/schedule:1f1b
//   single/resnet50/devices:1/batch:48/image:128/cores:2
#pragma once

#include <string>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"

namespace stratagem::bench {

/// Strategy, model, devices, batch, image, split and schedule where the row has them, then every
/// other option that is used and not the default, in the table's order; cores last. How it is
/// measured (steps, repetitions, order, timeout, verify) is no part of it.
std::string row_name(const Config& config, const Catalogue& catalogue);

/// The name of what a row computes, whichever way it does so:
/// "resnet50/batch:48/dtype:float32/...". Only rows of one workload are compared. It has the model,
/// the batch and the options of work (is_of_work) that the row uses; most of them only where they
/// are not the default.
std::string workload_name(const Config& config, const Catalogue& catalogue);

}  // namespace stratagem::bench
