#include "training/loop/batch_stream.h"

#include <utility>

namespace stratagem::training {
namespace {

std::map<std::size_t, std::vector<schedules::Slice>> rows_of(
    const strategies::Strategy& strategy, std::int64_t replicas,
    const std::vector<BatchIndices>& batches) {
  std::map<std::size_t, std::vector<schedules::Slice>> rows;
  for (const BatchIndices& batch : batches) {
    const auto [entry, is_new] = rows.try_emplace(batch.size());
    if (!is_new) continue;
    for (const auto& slice : strategy.batch_partition(static_cast<std::int64_t>(batch.size()))) {
      const bool own = replicas == 1 || slice.replica == strategy.replica();
      if (own) entry->second.push_back(slice);
    }
  }
  return rows;
}

LoaderOptions loader_options(const BatchStream::Options& options,
                             const datasets::SampleFormat& format, std::size_t largest) {
  const bool is_small = is_made_at_once(format, static_cast<std::int64_t>(largest));
  return {.threads = is_small ? 0 : static_cast<std::size_t>(options.threads),
          .prefetch = static_cast<std::size_t>(options.prefetch),
          .in_use = options.in_use,
          .timeout = options.timeout};
}

}  // namespace

bool is_made_at_once(const datasets::SampleFormat& format, std::int64_t samples) {
  constexpr std::int64_t most_numbers = 8 * 1024;
  const std::int64_t each = format.kind == datasets::SampleKind::image
                                ? format.channels * format.height * format.width
                                : format.features + format.outputs;
  return !format.decoded && samples * each <= most_numbers;
}

BatchStream::BatchStream(const models::Workload& workload, const strategies::Strategy& strategy,
                         const datasets::Dataset& data, std::vector<BatchIndices> batches,
                         const Options& options)
    : batches_(std::move(batches)),
      rows_(rows_of(strategy, options.replicas, batches_)),
      maker_(
          workload, data,
          {.slots = Loader::slots(loader_options(options, data.format(), batches_.front().size())),
           .largest = static_cast<std::int64_t>(batches_.front().size()),
           .pinned = options.pinned,
           .augment = options.augment}),
      loader_(batches_.size(), loader_options(options, data.format(), batches_.front().size()),
              [this, epoch = options.epoch](std::size_t batch, std::size_t slot) {
                maker_.fill(slot, batches_[batch], rows_.at(batches_[batch].size()), epoch);
              }) {}

models::Batch BatchStream::next() {
  const auto samples = static_cast<std::int64_t>(batches_[next_++].size());
  return maker_.batch(loader_.next(), samples);
}

}  // namespace stratagem::training
