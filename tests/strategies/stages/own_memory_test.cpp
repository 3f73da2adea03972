// A rank holds the layers of its own stages, and of those its own slices: what it takes to make
// them is counted by the accounting allocator.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <mutex>

#include "strategies/backends/memory_accounting.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::own_memory_test {
namespace {

constexpr double slack = 1.2;
constexpr double largest_layer = 4.0 * (64 * 256 + 256);  // of a block: 64 features to 256

models::WorkloadOptions gpt() {
  return {.model = "gpt-tiny", .batch = 2, .loss = models::Loss::cross_entropy};
}

std::int64_t bytes_of(models::LayerSpan layers) {
  std::int64_t bytes = 0;
  for (const auto& [_, tensor] : models::parameters(layers)) {
    bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
  return bytes;
}

/// What accounts had at their highest since.
class Peak {
 public:
  explicit Peak(backends::MemoryAccount account)
      : account_(account), before_(backends::memory_of(account).current_bytes) {
    backends::reset_peak_of(account);
  }
  double bytes() const {
    return static_cast<double>(backends::memory_of(account_).peak_bytes - before_);
  }

 private:
  backends::MemoryAccount account_;
  std::int64_t before_;
};

TEST(OwnMemory, APipelinesDeviceMakesItsOwnStageAlone) {
  backends::install_accounting_allocator();
  strategies::Training training(gpt(), 2);
  const auto context = training.context({.split_size = 1, .schedule = "1f1b"});
  auto layers = training.workload.make_meta_model().layers;
  const auto parts = models::cut(std::move(layers), boundaries_of(layers, context.options.cut));
  const Peak host(backends::host_account);
  const Peak first(1);
  const Peak second(2);
  training.strategy = strategies::find_strategy("pipeline").make(context);
  EXPECT_LT(first.bytes(), slack * static_cast<double>(bytes_of(parts[0])));
  EXPECT_LT(second.bytes(), slack * static_cast<double>(bytes_of(parts[1])));
  EXPECT_LT(host.bytes(), 0.05 * static_cast<double>(bytes_of(parts[0]))) << "beside the devices";
}

TEST(OwnMemory, ATensorRankMakesItsSlicesAndOneWholeLayerAtATime) {
  backends::install_accounting_allocator();
  const Peak host(backends::host_account);
  const Peak devices(1);  // of both ranks: they are threads, and each device is its rank's first
  double shares = 0;
  std::mutex mutex;
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, gpt(), {.tensor_ranks = 2});
    training.strategy = strategies::find_strategy("tensor_parallel").make(training.rank_context());
    const auto whole = static_cast<double>(bytes_of(training.workload.make_meta_model().layers));
    const std::lock_guard lock(mutex);
    shares += whole / 2;
  });
  EXPECT_LT(devices.bytes(), slack * shares + 2 * largest_layer);
  EXPECT_LT(host.bytes(), 0.1 * shares) << "beside the devices";
}

}  // namespace
}  // namespace stratagem::stages::own_memory_test
