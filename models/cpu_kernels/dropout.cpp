#include "models/cpu_kernels/dropout.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/cpu_kernels/kernel_choice.h"
#include "models/cpu_kernels/parallel_rows.h"
#include "models/datasets/random_bits.h"

namespace stratagem::models {
namespace {

using datasets::scramble_step;
using datasets::scrambled;

thread_local const SamplePlace* current_place = nullptr;

std::uint64_t mixed(std::uint64_t key, std::uint64_t with) {
  return scrambled(scrambled(key + scramble_step) + with);
}

/// Returns a key for each sample and position, [n, positions] (int64).
at::Tensor keys_of(const at::Tensor& x, const SamplePlace& place, std::string_view site) {
  std::uint64_t layer = place.seed;
  for (const char letter : site) layer = mixed(layer, static_cast<unsigned char>(letter));
  const std::uint64_t batch = mixed(layer, static_cast<std::uint64_t>(place.batch));
  at::Tensor keys = at::empty({x.size(0), x.size(1)}, at::kLong);
  auto* key = keys.mutable_data_ptr<std::int64_t>();
  for (std::int64_t n = 0; n < x.size(0); ++n) {
    const std::uint64_t sample =
        mixed(batch, static_cast<std::uint64_t>(place.sample_of(place.first_row + n)));
    for (std::int64_t t = 0; t < x.size(1); ++t) {
      *key++ = static_cast<std::int64_t>(
          mixed(sample, static_cast<std::uint64_t>(place.position_of(t))));
    }
  }
  return keys.to(x.device());
}

/// Shifts unsigned numbers.
at::Tensor shifted_right(const at::Tensor& bits, int by) {
  return at::bitwise_right_shift(bits, by).bitwise_and_((std::int64_t{1} << (64 - by)) - 1);
}

/// Computes datasets::scrambled().
at::Tensor scrambled_elements(const at::Tensor& state) {
  at::Tensor bits = shifted_right(state, 30).bitwise_xor_(state);
  bits.mul_(static_cast<std::int64_t>(0xbf58476d1ce4e5b9U));
  bits = shifted_right(bits, 27).bitwise_xor_(bits);
  bits.mul_(static_cast<std::int64_t>(0x94d049bb133111ebU));
  return shifted_right(bits, 31).bitwise_xor_(bits);
}

at::Tensor atens_drop(const at::Tensor& x, const at::Tensor& keys, std::uint64_t threshold,
                      double scale) {
  const at::Tensor steps =
      at::arange(1, x.size(-1) + 1, keys.options()).mul_(static_cast<std::int64_t>(scramble_step));
  const at::Tensor bits = scrambled_elements(keys.unsqueeze(-1) + steps);
  const at::Tensor kept = shifted_right(bits, 32).ge_(static_cast<std::int64_t>(threshold));
  return x.mul(scale).mul_(kept);
}

at::Tensor dropped(const at::Tensor& x, const at::Tensor& keys, double rate) {
  const auto threshold = static_cast<std::uint64_t>(std::llround(rate * 0x1p32));
  const double scale = 1 / (1 - rate);
  if (!takes_row_kernels(x)) return atens_drop(x, keys, threshold, scale);
  const at::Tensor dense = x.contiguous();
  at::Tensor y = at::empty_like(dense);
  with_row_kernels(dense, [&](auto zero, const auto& kernels) {
    using T = decltype(zero);
    const std::int64_t features = x.size(-1);
    for_rows(keys.numel(), features, [&](std::int64_t first, std::int64_t rows) {
      kernels.drop({.x = dense.const_data_ptr<T>() + first * features,
                    .keys = keys.const_data_ptr<std::int64_t>() + first,
                    .y = y.mutable_data_ptr<T>() + first * features,
                    .threshold = threshold,
                    .scale = static_cast<T>(scale)},
                   rows, features);
    });
  });
  return y;
}

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& keys, double rate) {
    context->save_for_backward({keys});
    context->saved_data["rate"] = rate;
    return dropped(x, keys, rate);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const double rate = context->saved_data.at("rate").toDouble();
    return {dropped(gradients[0], context->get_saved_variables()[0], rate), {}, {}};
  }
};

}  // namespace

std::int64_t SamplePlace::sample_of(std::int64_t row) const {
  if (dealt_to == 1) return row;
  const std::int64_t each = rows / dealt_to;
  const std::int64_t longer = rows % dealt_to;  // the first replicas have one row more
  const std::int64_t of_longer = longer * (each + 1);
  if (row < of_longer) return row / (each + 1) + row % (each + 1) * dealt_to;
  return longer + (row - of_longer) / each + (row - of_longer) % each * dealt_to;
}

SamplePlaceGuard::SamplePlaceGuard(const SamplePlace& place)
    : previous_(std::exchange(current_place, &place_)), place_(place) {}

SamplePlaceGuard::~SamplePlaceGuard() { current_place = previous_; }

at::Tensor placed_dropout(const at::Tensor& x, double rate, std::string_view site) {
  if (rate == 0) return x;
  if (current_place == nullptr) throw std::logic_error("dropout needs a SamplePlaceGuard");
  return Dropout::apply(x, keys_of(x, *current_place, site), rate);
}

}  // namespace stratagem::models
