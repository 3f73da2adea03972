#include "models/loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

namespace stratagem::models {

std::string_view to_string(Loss loss) { return loss == Loss::mse ? "mse" : "cross_entropy"; }

at::Tensor loss(Loss kind, const at::Tensor& output, const at::Tensor& targets, double weight) {
  const at::Tensor mean = kind == Loss::mse
                              ? at::mse_loss(output, targets, at::Reduction::Mean)
                              : at::cross_entropy_loss(output.flatten(0, -2), targets.flatten());
  return weight == 1.0 ? mean : mean.mul(weight);
}

at::Tensor correct_predictions(const at::Tensor& output, const at::Tensor& targets) {
  const bool one_hot = targets.is_floating_point();
  return output.argmax(-1).eq(one_hot ? targets.argmax(-1) : targets).sum();
}

at::Tensor make_targets(Loss kind, const at::Tensor& labels, std::int64_t classes,
                        at::ScalarType dtype) {
  if (kind == Loss::cross_entropy) return labels;
  return at::zeros({labels.size(0), classes}, labels.options().dtype(dtype))
      .scatter_(1, labels.unsqueeze(1), 1.0);
}

}  // namespace stratagem::models
