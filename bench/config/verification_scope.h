// What a verification shrinks. It keeps the row's strategy, schedule, cut, devices, number of
// micro-batches and remainder. Width, batch and images become small, so that the float64 proof of a
// large row takes a second. Images grow where a BatchNorm would have fewer than eight elements a
// channel: over two, its gradient almost vanishes and the comparison proves nothing.
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

/// What matters of the row's model and arrangement.
struct ScopeTraits {
  bool has_images = false;
  bool has_batch_norm = false;
  bool has_tokens = false;
  std::int64_t tensor_degree = 1;  // the sequence stays divisible by it
};

/// `micro_batches` are the row's sizes.
VerificationScope shrink(const Config& row, const std::vector<std::int64_t>& micro_batches,
                         const ScopeTraits& traits);

struct SizeChange {
  const char* what;
  std::int64_t before;
  std::int64_t after;
};

/// "batch 48 -> 8, image 128 -> 64": those that did change.
std::string text_of(std::initializer_list<SizeChange> changes);

/// What a scope's text says: "batch 48 -> 8, width x0.125", or "full size".
std::string difference(const Config& row, const VerificationScope& scope);

/// Sets learning rate, momentum and a bound of the gradients' norm by which an update differs from
/// none, and a clipped one from any other.
void make_update_show(Config& config);

/// Returns true if a BatchNorm of the row normalises a micro-batch over fewer than eight numbers.
/// Its gradient is nearly zero then, and roundings are amplified a hundredfold or more.
bool amplifies_roundings(const Config& row, const std::vector<std::int64_t>& micro_batches,
                         const ScopeTraits& traits);

/// How far, relatively, the row's first loss may be from that of one device: the rounding of the
/// factors of a product, over sums in another order. TF32 keeps as many bits of them as float16.
/// `amplified`: as amplifies_roundings() has it.
double first_loss_tolerance(const Config& row, bool amplified);

}  // namespace stratagem::bench
