// Shrinks a row for its verification. The row keeps its strategy, schedule, cut, devices, number of
// micro-batches and remainder. Width, batch and images become small, so that the float64 proof of a
// large row takes a second. Images grow where a BatchNorm would have fewer than eight elements a
// channel: with two, its gradient almost vanishes and the comparison proves nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "bench/config/config.h"

namespace stratagem::bench {

struct VerificationScope {
  Config config;       // the row, shrunk
  double width = 1.0;  // multiplies the model's hidden widths
  std::string text;    // "image 128 -> 64, width x0.125, batch 48 -> 8"
};

/// The traits of a row's model and arrangement that limit its scope.
struct ScopeTraits {
  bool has_images = false;
  bool has_batch_norm = false;
  bool has_tokens = false;
  std::int64_t sequence_degree = 1;  // the sequence stays divisible by it
  /// The values of a channel that one sample gives to the smallest BatchNorm of a model whose
  /// images cannot grow; else 0.
  std::int64_t positions = 0;
};

/// `micro_batches` are the row's sizes.
VerificationScope shrink(const Config& row, const std::vector<std::int64_t>& micro_batches,
                         const ScopeTraits& traits);

struct SizeChange {
  const char* what;
  std::int64_t before;
  std::int64_t after;
};

/// Returns the sizes that changed: "batch 48 -> 8, image 128 -> 64".
std::string text_of(std::initializer_list<SizeChange> changes);

/// Returns the text of a scope: "batch 48 -> 8, width x0.125", or "full size".
std::string difference(const Config& row, const VerificationScope& scope);

/// Sets the learning rate, momentum and bound of the gradients' norm so that a missing update and a
/// missing clipping show.
void make_update_show(Config& config);

/// Returns true if a BatchNorm of the row normalises a micro-batch over fewer than eight numbers.
/// Its gradient is nearly zero then, and roundings are amplified a hundredfold or more.
bool amplifies_roundings(const Config& row, const std::vector<std::int64_t>& micro_batches,
                         const ScopeTraits& traits);

/// Returns how far, relatively, the row's first loss may be from one device's: the rounding of the
/// factors of a product, over sums in another order. TF32 keeps as many bits of them as float16.
/// `amplified`: see amplifies_roundings().
double first_loss_tolerance(const Config& row, bool amplified);

}  // namespace stratagem::bench
