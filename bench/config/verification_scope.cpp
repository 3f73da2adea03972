#include "bench/config/verification_scope.h"

#include <fmt/format.h>

#include <algorithm>

namespace stratagem::bench {
namespace {

constexpr std::int64_t image_reduction = 32;  // a ResNet's last feature map is image / 32 wide
constexpr std::int64_t least_elements = 8;    // fewest elements of a BatchNorm channel
constexpr std::int64_t few_tokens = 16;
constexpr double small_width = 0.125;
constexpr double always_clipped = 1e-3;  // a norm that the gradients of every model exceed

/// Returns the smallest image whose last feature map holds enough elements of `samples` samples.
std::int64_t smallest_image(std::int64_t samples) {
  std::int64_t positions = 1;
  while (samples * positions * positions < least_elements) ++positions;
  return positions * image_reduction;
}

double tolerance_of_format(const Config& row) {
  constexpr double eleven_bits = 1e-2;
  const Dtype format = compute_format(row);
  if (format == "float64") return 1e-9;
  if (format == "float32") return row.device == "cuda" && row.tf32 ? eleven_bits : 1e-4;
  if (format == "float16") return eleven_bits;
  return 5e-2;  // bfloat16
}

}  // namespace

VerificationScope shrink(const Config& row, const std::vector<std::int64_t>& micro_batches,
                         const ScopeTraits& traits) {
  const auto [has_images, has_batch_norm, has_tokens, sequence_degree, positions] = traits;
  VerificationScope scope{row, 1.0, {}};
  const bool remainder = micro_batches.back() != micro_batches.front();
  // Uses the smallest sizes that keep "the last one is smaller" and eight elements in a BatchNorm.
  std::int64_t split = remainder ? 2 : 1;
  std::int64_t last = 1;
  // Images of a fixed size cannot grow: the batch has the elements then.
  const bool samples_grow = has_batch_norm && positions > 0;
  if (has_batch_norm) {
    last =
        samples_grow ? std::max<std::int64_t>(2, (least_elements + positions - 1) / positions) : 2;
    split = remainder ? last + 1 : last;
  }
  if (!remainder) last = split;
  // With one sample a batch, nothing would show a lost sample.
  if (!has_batch_norm && micro_batches.size() == 1) split = last = 4;
  const auto full = static_cast<std::int64_t>(micro_batches.size()) - 1;
  const std::int64_t batch = full * split + last;

  if (batch < row.global_batch_size || samples_grow) {
    scope.config.global_batch_size = batch;
    scope.config.split_size = split;
  }
  const std::int64_t samples = std::min(last, micro_batches.back());
  // The row's images may be too small for that; the copy's images are then larger.
  if (has_images) {
    scope.config.image_size =
        has_batch_norm ? smallest_image(samples) : std::min(image_reduction, row.image_size);
  }
  const std::int64_t sequence =
      (few_tokens + sequence_degree - 1) / sequence_degree * sequence_degree;
  if (has_tokens) scope.config.sequence_length = std::min(sequence, row.sequence_length);
  if (has_images || has_tokens) scope.width = small_width;
  scope.text = difference(row, scope);
  scope.config.dtype = "float64";
  make_update_show(scope.config);
  return scope;
}

std::string text_of(std::initializer_list<SizeChange> changes) {
  std::string text;
  for (const auto& [what, before, after] : changes) {
    if (before == after) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", what, before, after);
  }
  return text;
}

std::string difference(const Config& row, const VerificationScope& scope) {
  const Config& small = scope.config;
  std::string text = text_of({{"batch", row.global_batch_size, small.global_batch_size},
                              {"image", row.image_size, small.image_size},
                              {"sequence", row.sequence_length, small.sequence_length}});
  if (scope.width != 1) text += fmt::format("{}width x{}", text.empty() ? "" : ", ", scope.width);
  return text.empty() ? "full size" : text;
}

void make_update_show(Config& config) {
  config.learning_rate = config.optimizer == "sgd" ? 0.1 : 1e-3;
  config.momentum = config.optimizer == "sgd" ? 0.9 : 0.0;
  if (config.clip_gradients > 0) config.clip_gradients = always_clipped;
}

bool amplifies_roundings(const Config& row, const std::vector<std::int64_t>& micro_batches,
                         const ScopeTraits& traits) {
  return traits.has_batch_norm && traits.has_images &&
         row.image_size < smallest_image(micro_batches.back());
}

double first_loss_tolerance(const Config& row, bool amplified) {
  return (amplified ? 100 : 1) * tolerance_of_format(row);
}

}  // namespace stratagem::bench
