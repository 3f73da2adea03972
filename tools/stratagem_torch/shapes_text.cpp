#include "tools/stratagem_torch/shapes_text.h"

#include <fmt/format.h>

#include "bench/config/placement.h"
#include "bench/worker/session.h"
#include "models/model.h"
#include "strategies/registry.h"

namespace stratagem::tools {

training::EpochShape shape_of(const bench::Config& row, const training::TrainingOptions& options,
                              const datasets::Datasets& data) {
  const bool one_process = strategies::find_strategy(row.strategy).one_process;
  return {.samples = data.training->size(),
          .batch = row.global_batch_size,
          .replicas = one_process ? 1 : bench::placement_of(row).replicas(),
          .tail = training::tail_of(options.tail)};
}

std::vector<std::string> shapes_text(const bench::Config& row,
                                     const training::TrainingOptions& options,
                                     const datasets::Datasets& data) {
  const models::Workload workload(bench::workload_options(row));
  const models::LayerList layers = workload.make_meta_model().layers;
  const auto shapes = [&](std::int64_t samples) {
    const models::Shape input = workload.input_shape(samples);
    return fmt::format("input {}, output {}", models::to_string(input),
                       models::to_string(models::output_shape(layers, input)));
  };
  std::vector<std::int64_t> order(static_cast<std::size_t>(data.training->size()));
  std::vector<std::string> lines;
  int step = 0;
  for (const auto& batch : batches_of_an_epoch(order, shape_of(row, options, data))) {
    bench::Config of_size = row;
    of_size.global_batch_size = static_cast<std::int64_t>(batch.size());
    lines.push_back(fmt::format("step {}: {}", ++step, shapes(of_size.global_batch_size)));
    for (const auto& slice : bench::partition_of(of_size)) {
      lines.push_back(fmt::format("  {}:{}: {}", row.device, slice.replica, shapes(slice.count)));
    }
  }
  return lines;
}

}  // namespace stratagem::tools
