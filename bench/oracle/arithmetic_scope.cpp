#include "bench/oracle/arithmetic_scope.h"

#include <fmt/format.h>

#include <algorithm>

namespace stratagem::bench {
namespace {

constexpr std::int64_t pixel_of_last_map = 32;  // image pixels for a pixel of a ResNet's last map
constexpr std::int64_t shortest_sequence = 16;  // in tokens
constexpr std::int64_t fewest_elements = 8;     // fewest elements of a BatchNorm channel
constexpr std::int64_t usual_samples = 16;      // ATen chooses convolutions alike from here on
constexpr double least_width = 0.125;

std::int64_t quotient_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// Returns whether the last feature maps of the images hold enough for a BatchNorm.
bool has_elements(const ScopeTraits& traits, std::int64_t samples, std::int64_t image) {
  const std::int64_t positions = image / pixel_of_last_map;
  return !traits.has_batch_norm || samples * positions * positions >= fewest_elements;
}

bool shrink_input(std::int64_t& image, std::int64_t& sequence, const ScopeTraits& traits,
                  std::int64_t samples) {
  if (traits.has_images) {
    if (image <= pixel_of_last_map || !has_elements(traits, samples, image - pixel_of_last_map))
      return false;
    image = (image - 1) / pixel_of_last_map * pixel_of_last_map;
    return true;
  }
  const std::int64_t multiple = traits.sequence_degree;
  const std::int64_t half = quotient_up(quotient_up(sequence, 2), multiple) * multiple;
  if (!traits.has_tokens || half < shortest_sequence || half >= sequence) return false;
  sequence = half;
  return true;
}

/// The ways to shrink a row's step; each returns whether it found something.
class StepShrinker {
 public:
  StepShrinker(const Config& row, const ScopeTraits& traits, std::int64_t replicas,
               strategies::MicroBatchOption counted)
      : scope{row, 1.0, {}}, traits_(traits), replicas_(replicas), counted_(counted) {}

  bool drop_a_micro_batch() {
    Config& config = scope.config;
    constexpr std::int64_t fewest = 2;  // the second adds to the first one's gradients
    if (counted_ == strategies::MicroBatchOption::split_size) {
      const std::int64_t count = quotient_up(samples_of_a_replica(), config.split_size);
      if (count <= fewest) return false;
      config.global_batch_size -= replicas_ * config.split_size;
      return true;
    }
    std::int64_t& count = config.accumulation_steps;
    if (counted_ != strategies::MicroBatchOption::accumulation_steps || count <= fewest)
      return false;
    config.global_batch_size = quotient_up(config.global_batch_size * (count - 1), count);
    --count;
    return true;
  }

  bool shrink_input() {
    Config& config = scope.config;
    return bench::shrink_input(config.image_size, config.sequence_length, traits_, smallest());
  }

  bool halve_samples() {
    Config& config = scope.config;
    const std::int64_t half = smallest() / 2;
    if (half < 1 || !has_elements(traits_, half, config.image_size)) return false;
    config.global_batch_size = quotient_up(config.global_batch_size, 2);
    if (counted_ == strategies::MicroBatchOption::split_size) {
      config.split_size = quotient_up(config.split_size, 2);
    }
    return true;
  }

  bool narrow() {
    if (scope.width <= least_width || !(traits_.has_images || traits_.has_tokens)) return false;
    scope.width /= 2;
    return true;
  }

  VerificationScope scope;

 private:
  std::int64_t samples_of_a_replica() const {
    return quotient_up(scope.config.global_batch_size, replicas_);
  }

  /// Returns the samples of the smallest micro-batch.
  std::int64_t smallest() const {
    const Config& config = scope.config;
    const std::int64_t own = std::max<std::int64_t>(config.global_batch_size / replicas_, 1);
    if (counted_ == strategies::MicroBatchOption::accumulation_steps)
      return own / config.accumulation_steps;
    if (counted_ == strategies::MicroBatchOption::none || own <= config.split_size) return own;
    const std::int64_t remainder = own % config.split_size;
    return remainder == 0 ? config.split_size : remainder;
  }

  ScopeTraits traits_;
  std::int64_t replicas_;
  strategies::MicroBatchOption counted_;
};

}  // namespace

VerificationScope shrink_step(
    const Config& row, const ScopeTraits& traits, std::int64_t replicas,
    strategies::MicroBatchOption counted, StepSize affordable,
    const std::function<StepSize(const Config& config, double width)>& size_of) {
  StepShrinker shrinker(row, traits, replicas, counted);
  VerificationScope& scope = shrinker.scope;
  const auto size = [&] { return size_of(scope.config, scope.width); };
  while (size().parameters > affordable.parameters && shrinker.narrow()) {
  }
  while (size().flops > affordable.flops) {
    const bool shrunk = shrinker.drop_a_micro_batch() || shrinker.shrink_input() ||
                        shrinker.halve_samples() || shrinker.narrow();
    if (!shrunk) break;
  }
  scope.text = difference(row, scope);
  if (scope.config.split_size != row.split_size) {
    scope.text += fmt::format(", split {} -> {}", row.split_size, scope.config.split_size);
  }
  make_update_show(scope.config);
  return scope;
}

LayerScope shrink_layers(const LayerScope& full, const ScopeTraits& traits, double affordable_flops,
                         const std::function<double(const LayerScope&)>& flops_of) {
  LayerScope scope = full;
  const auto reduce_samples = [&](std::int64_t least) {
    const std::int64_t most = std::ranges::max(scope.samples);
    const std::int64_t fewer = std::max(least, most - quotient_up(most, 8));
    if (fewer >= most || !has_elements(traits, fewer, scope.image_size)) return false;
    for (std::int64_t& samples : scope.samples) samples = std::min(samples, fewer);
    return true;
  };
  const auto least = [&] { return std::ranges::min(scope.samples); };
  while (flops_of(scope) > affordable_flops) {
    const bool shrunk = reduce_samples(traits.has_images ? usual_samples : 1) ||
                        shrink_input(scope.image_size, scope.sequence_length, traits, least()) ||
                        reduce_samples(1);
    if (!shrunk) break;
  }
  return scope;
}

std::string difference(const LayerScope& full, const LayerScope& shrunk) {
  const std::string text = text_of({{"micro-batch", full.samples[0], shrunk.samples[0]},
                                    {"image", full.image_size, shrunk.image_size},
                                    {"sequence", full.sequence_length, shrunk.sequence_length}});
  return text.empty() ? "full size" : text;
}

}  // namespace stratagem::bench
