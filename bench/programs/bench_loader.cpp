// Times the loader of image batches without training.
//
// A row reads 10,000 drawn images of CIFAR-10's shape (3x32x32, 10 classes) in batches of 64 by
// training/loader.h and training/loop/batch_maker.h, as `stratagem train` does: float32,
// channels_last. `augment` is 1 if they are shifted and mirrored. Its time is the processor time of
// the whole process, over all of its threads, so that items_per_second are samples a
// processor-second. Counter: batches of an iteration.

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "bench/google_benchmark/library_main.h"
#include "models/datasets/dataset.h"
#include "models/distributed_sampler.h"
#include "models/workload.h"
#include "training/epoch.h"
#include "training/loader.h"
#include "training/loop/batch_maker.h"

namespace {

using namespace stratagem;

constexpr std::int64_t samples = 10'000;
constexpr std::int64_t batch_size = 64;

models::Workload workload() {
  models::WorkloadOptions options;
  options.model = "resnet18";
  options.batch = batch_size;
  options.image_size = 32;
  options.classes = 10;
  options.loss = models::Loss::cross_entropy;
  return models::Workload(options);
}

/// Reads all batches of an epoch and gives each back at once.
void read_epoch(training::BatchMaker& maker, const std::vector<training::BatchIndices>& batches,
                const training::LoaderOptions& options, std::uint64_t epoch) {
  training::Loader loader(batches.size(), options, [&](std::size_t batch, std::size_t slot) {
    const auto size = static_cast<std::int64_t>(batches[batch].size());
    maker.fill(slot, batches[batch], std::vector<schedules::Slice>{{0, size}}, epoch);
  });
  for (const training::BatchIndices& batch : batches) {
    maker.batch(loader.next(), static_cast<std::int64_t>(batch.size()));
  }
}

void loader(benchmark::State& state) {
  at::set_num_threads(1);
  const training::LoaderOptions options{.threads = static_cast<std::size_t>(state.range(0))};
  const models::Workload work = workload();
  const datasets::DatasetPointer data =
      datasets::make_datasets({.name = "shapes", .samples = samples}, /*characters=*/"").training;
  training::BatchMaker maker(
      work, *data,
      {.slots = options.prefetch + 1, .largest = batch_size, .augment = state.range(1) != 0});
  models::DistributedSampler sampler({.samples = samples});
  std::uint64_t epoch = 0;
  std::size_t batches = 0;
  for (auto iteration : state) {
    sampler.set_epoch(epoch);
    const auto order =
        training::batches_of_an_epoch(sampler.indices(), {.samples = samples, .batch = batch_size});
    batches = order.size();
    read_epoch(maker, order, options, epoch++);
  }
  state.SetItemsProcessed(state.iterations() * samples);
  state.counters["batches"] = static_cast<double>(batches);
}

BENCHMARK(loader)
    ->ArgNames({"threads", "augment"})
    ->ArgsProduct({{1, 2}, {0, 1}})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  return stratagem::bench::library_main(argc, argv, "bench_loader");
}
