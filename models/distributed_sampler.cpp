#include "models/distributed_sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace stratagem::models {

DistributedSampler::DistributedSampler(const SamplerOptions& options) : options_(options) {
  if (options.rank < 0 || options.rank >= options.replicas) {
    throw std::invalid_argument("rank " + std::to_string(options.rank) + " of " +
                                std::to_string(options.replicas) + " replicas does not exist");
  }
  if (options.samples < 1) throw std::invalid_argument("a sampler needs at least one sample");
  size_ = options.samples / options.replicas;
  const bool remainder = options.samples % options.replicas != 0;
  if (remainder && !options.drop_last) ++size_;
}

std::vector<std::int64_t> DistributedSampler::indices() const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(options_.samples));
  if (options_.shuffle) {
    const at::Generator generator = at::detail::createCPUGenerator(options_.seed + epoch_);
    const at::Tensor permutation = at::randperm(options_.samples, generator, at::kLong);
    std::copy_n(permutation.const_data_ptr<std::int64_t>(), order.size(), order.begin());
  } else {
    std::iota(order.begin(), order.end(), std::int64_t{0});
  }
  // Position i of all replicas' indices together is sample i, modulo the number of samples.
  std::vector<std::int64_t> own;
  for (std::int64_t index = 0; index < size_; ++index) {
    const std::int64_t position = options_.rank + index * options_.replicas;
    own.push_back(order[static_cast<std::size_t>(position % options_.samples)]);
  }
  return own;
}

}  // namespace stratagem::models
