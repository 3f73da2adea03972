// A rank of tests that shares layers with all others.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "strategies/layer_exchange/exchange_group.h"
#include "tests/strategies/in_order_backend.h"
#include "tests/strategies/training.h"

namespace stratagem::tensor_parallel {

struct Rank {
  explicit Rank(distributed::RankContext& ranks,
                const layer_exchange::ExchangeOptions& exchange = {}, bool in_order = false)
      : devices(strategies::unpinned_devices(1)) {
    std::vector<int> everyone;
    for (int rank = 0; rank < ranks.info().world_size; ++rank) everyone.push_back(rank);
    distributed::BackendOptions options;
    options.timeout = std::chrono::seconds(20);
    processes = ranks.make_group("tensor", everyone, "gloo", *devices.devices[0], options);
    if (in_order) processes = distributed::in_order(*processes, "tensor", *devices.devices[0]);
    group =
        std::make_unique<layer_exchange::ExchangeGroup>(*processes, *devices.devices[0], exchange);
  }

  backends::DeviceGroup devices;
  std::unique_ptr<distributed::ProcessGroup> processes;
  std::unique_ptr<layer_exchange::ExchangeGroup> group;
};

}  // namespace stratagem::tensor_parallel
