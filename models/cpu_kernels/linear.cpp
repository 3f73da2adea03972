#include "models/cpu_kernels/linear.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <utility>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/gradient_accumulation_fusion.h"
#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/kernels/transposed_product_kernels.h"
#include "models/cpu_kernels/kernels/wide_vectors.h"
#include "models/cpu_kernels/parallel_rows.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/cpu_kernels/remade_inputs.h"

namespace stratagem::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The number of multiply-adds below which either library's products take microseconds.
constexpr std::int64_t kWorthwhile = 1 << 20;

// From this many rows on MKL's product is slower on AMD's processors with wide vectors, even with
// the costs of oneDNN's operator and of a separate pass over the sum.
constexpr std::int64_t kManyRows = 64;

thread_local bool product_is_unread = false;

bool takes_onednn(const at::Tensor& rows, const at::Tensor& weight) {
  return !uses_reference_kernels() && rows.is_cpu() && rows.scalar_type() == at::kFloat &&
         at::globalContext().userEnabledMkldnn() &&
         rows.size(0) * weight.size(0) * weight.size(1) >= kWorthwhile;
}

// Calls mkldnn::_linear_pointwise(x [m, k], weight [n, k], bias [n]) -> [m, n] without a function
// behind it.
at::Tensor onednn_product(const at::Tensor& rows, const at::Tensor& weight,
                          const at::Tensor& bias) {
  using Signature = at::Tensor(
      const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
      c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
  static const auto product = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                                  .typed<Signature>();
  return product.call(rows, weight, bias.defined() ? std::optional(bias) : std::nullopt, "none",
                      c10::List<std::optional<at::Scalar>>(), "");
}

enum class Library { aten, onednn, own };

// Returns the library that computes left^T right, [m, o] and [m, i].
Library library_of_transposed_product(const at::Tensor& left, const at::Tensor& right) {
  static const kernels::WideVectors wide_vectors = kernels::wide_vectors();
  if (wide_vectors == kernels::WideVectors::left_to_mkl || left.size(0) < kManyRows ||
      !takes_onednn(left.t(), right.t())) {
    return Library::aten;
  }
  if (wide_vectors == kernels::WideVectors::full) return Library::onednn;
  const bool fits = left.is_contiguous() && right.is_contiguous() &&
                    right.size(1) % kernels::transposed_product_columns == 0;
  return fits ? Library::own : Library::aten;
}

at::Tensor transposed_product_by_onednn(const at::Tensor& left, const at::Tensor& right) {
  return onednn_product(left.t(), right.t(), {});
}

void compute_transposed_product(const at::Tensor& sum, const at::Tensor& left,
                                const at::Tensor& right, bool added) {
  const std::int64_t parts = parallel_parts(sum.size(0), sum.size(1));
  // The device's thread allocates, because ATen's threads have no memory account.
  const at::Tensor scratch = at::empty({parts, kernels::transposed_product_scratch}, at::kFloat);
  float* const results = sum.mutable_data_ptr<float>();
  for_each_part(parts, sum.size(0), [&](std::int64_t part, std::int64_t first, std::int64_t count) {
    kernels::best_kernels<kernels::TransposedProductKernels>().product(
        {.left = left.const_data_ptr<float>() + first,
         .left_row = left.size(1),
         .right = right.const_data_ptr<float>(),
         .sum = results + first * sum.size(1),
         .depth = left.size(0),
         .rows = count,
         .columns = sum.size(1),
         .added = added,
         .scratch = scratch.mutable_data_ptr<float>() + part * scratch.size(1)});
  });
}

// Returns zeros that share one element's memory.
at::Tensor unread_product(const at::Tensor& rows, const at::Tensor& weight) {
  return at::zeros({1}, rows.options()).expand({rows.size(0), weight.size(0)});
}

at::Tensor forward_pass(AutogradContext& context, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& bias) {
  context.save_for_backward({kept_input(context, x), weight, bias});
  save_deferred_weight_gradients(context);
  const at::Tensor rows = x.flatten(0, -2);
  const at::Tensor y =
      product_is_unread ? unread_product(rows, weight) : linear_product(rows, weight, bias);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return at::_unsafe_view(y, shape);  // not an autograd view, so that it may change in place
}

variable_list backward_pass(AutogradContext& context, const at::Tensor& y_gradient) {
  const variable_list saved = context.get_saved_variables();
  const at::Tensor gradient = y_gradient.contiguous().flatten(0, -2);
  const at::Tensor& weight = saved[1];
  const at::Tensor& bias = saved[2];
  variable_list result(bias.defined() ? 3 : 2);
  if (context.needs_input_grad(0)) {
    std::vector<std::int64_t> shape = y_gradient.sizes().vec();
    shape.back() = weight.size(1);
    result[0] = linear_input_gradient(gradient, weight).view(shape);
  }
  const auto weight_gradient = [weight, gradient, input = input_of(context, saved[0])] {
    return accumulated_weight_gradient(weight, input().flatten(0, -2), gradient);
  };
  if (const auto deferred = saved_deferred_weight_gradients(context)) {
    deferred->defer(weight, weight_gradient);
    if (bias.defined()) deferred->defer(bias, [gradient] { return gradient.sum(0); });
    return result;
  }
  if (bias.defined()) result[1] = gradient.sum(0);
  result.back() = weight_gradient();
  return result;
}

// The bias precedes the weight, so that gradients become ready in ATen's order.
class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& bias,
                            const at::Tensor& weight) {
    return forward_pass(*context, x, weight, bias);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return backward_pass(*context, gradients[0]);
  }
};

// A Function cannot take an undefined tensor.
class BiaslessLinearFunction : public torch::autograd::Function<BiaslessLinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight) {
    return forward_pass(*context, x, weight, {});
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return backward_pass(*context, gradients[0]);
  }
};

}  // namespace

UnreadProductGuard::UnreadProductGuard() : previous_(std::exchange(product_is_unread, true)) {}

UnreadProductGuard::~UnreadProductGuard() { product_is_unread = previous_; }

at::Tensor linear_product(const at::Tensor& rows, const at::Tensor& weight,
                          const at::Tensor& bias) {
  if (takes_onednn(rows, weight)) return onednn_product(rows, weight, bias);
  return at::linear(rows, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

at::Tensor linear_input_gradient(const at::Tensor& gradient_rows, const at::Tensor& weight) {
  if (takes_onednn(gradient_rows, weight)) return onednn_product(gradient_rows, weight.t(), {});
  return at::mm(gradient_rows, weight);
}

at::Tensor linear_weight_gradient(const at::Tensor& rows, const at::Tensor& gradient_rows) {
  switch (library_of_transposed_product(gradient_rows, rows)) {
    case Library::onednn:
      return transposed_product_by_onednn(gradient_rows, rows);
    case Library::own: {
      at::Tensor product = at::empty({gradient_rows.size(1), rows.size(1)}, rows.options());
      compute_transposed_product(product, gradient_rows, rows, /*added=*/false);
      return product;
    }
    case Library::aten:
      break;
  }
  return at::mm(gradient_rows.t(), rows);
}

void add_transposed_product(at::Tensor sum, const at::Tensor& left, const at::Tensor& right) {
  switch (library_of_transposed_product(left, right)) {
    case Library::onednn:
      sum.add_(transposed_product_by_onednn(left, right));
      return;
    case Library::own:
      return compute_transposed_product(sum, left, right, /*added=*/true);
    case Library::aten:
      sum.addmm_(left.t(), right);
      return;
  }
}

at::Tensor accumulated_weight_gradient(const at::Tensor& weight, const at::Tensor& rows,
                                       const at::Tensor& gradient_rows) {
  if (accumulate_into_gradient(weight, gradient_rows, rows)) return {};
  return linear_weight_gradient(rows, gradient_rows);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (uses_reference_kernels() && !current_deferred_weight_gradients() &&
      remade_inputs() == RemadeInputs::never && !product_is_unread) {
    return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
  }
  return bias.defined() ? LinearFunction::apply(x, bias, weight)
                        : BiaslessLinearFunction::apply(x, weight);
}

}  // namespace stratagem::models
