#include "models/cpu_kernels/row_functions.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/kernel_choice.h"
#include "models/cpu_kernels/parallel_rows.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kRmsNormEpsilon = 1e-5;

/// Returns x over its root mean square, in the format of sums.
at::Tensor over_root_mean_square(const at::Tensor& x, const at::Tensor& inverse_root) {
  return x.to(inverse_root.scalar_type()).mul(inverse_root);
}

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight) {
    const bool own = takes_row_kernels(x);
    const at::Tensor dense = own ? x.contiguous() : x;
    at::Tensor inverse_root;
    at::Tensor y;
    if (own) {
      std::tie(y, inverse_root) = own_forward(dense, weight.contiguous());
    } else {
      const at::Tensor wide = x.to(at::toOpMathType(x.scalar_type()));
      inverse_root = wide.square().mean(-1, /*keepdim=*/true).add_(kRmsNormEpsilon).rsqrt_();
      y = wide.mul(inverse_root).mul_(weight).to(x.scalar_type());
    }
    context->save_for_backward({dense, weight, inverse_root});
    context->saved_data["own"] = own;
    save_deferred_weight_gradients(*context);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool own = context->saved_data.at("own").toBool();
    const auto derivatives = own ? own_derivatives : atens_derivatives;
    if (const auto deferred = saved_deferred_weight_gradients(*context)) {
      // The result ignores the weight, whose memory may be freed by then (sharded parameters).
      deferred->defer(saved[1], [derivatives, gradient = gradients[0], saved] {
        return derivatives(gradient, saved, {false, true})[1];
      });
      return {derivatives(gradients[0], saved, {true, false})[0], {}};
    }
    return derivatives(gradients[0], saved, {true, true});
  }

 private:
  static std::pair<at::Tensor, at::Tensor> own_forward(const at::Tensor& x,
                                                       const at::Tensor& weight) {
    at::Tensor y = at::empty_like(x);
    at::Tensor inverse_root = at::empty({x.numel() / x.size(-1)}, x.options());
    with_row_kernels(x, [&](auto zero, const auto& kernels) {
      using T = decltype(zero);
      const std::int64_t features = x.size(-1);
      for_rows(inverse_root.numel(), features, [&](std::int64_t first, std::int64_t rows) {
        kernels.rms_norm({.x = x.const_data_ptr<T>() + first * features,
                          .weight = weight.const_data_ptr<T>(),
                          .y = y.mutable_data_ptr<T>() + first * features,
                          .inverse = inverse_root.mutable_data_ptr<T>() + first,
                          .epsilon = static_cast<T>(kRmsNormEpsilon)},
                         rows, features);
      });
    });
    return {y, inverse_root};
  }

  /// `wanted`: of the input, of the weight.
  static variable_list own_derivatives(const at::Tensor& of_y, const variable_list& saved,
                                       std::array<bool, 2> wanted) {
    const at::Tensor& x = saved[0];
    const at::Tensor gradient = of_y.contiguous();
    const at::Tensor weight = wanted[0] ? saved[1].contiguous() : at::Tensor();
    const std::int64_t features = x.size(-1);
    const std::int64_t all_rows = x.numel() / features;
    const std::int64_t parts = parallel_parts(all_rows, features);
    at::Tensor of_x = wanted[0] ? at::empty_like(x) : at::Tensor();
    at::Tensor of_weight = wanted[1] ? at::zeros({parts, features}, x.options()) : at::Tensor();
    with_row_kernels(x, [&](auto zero, const auto& kernels) {
      using T = decltype(zero);
      for_each_part(parts, all_rows, [&](std::int64_t part, std::int64_t first, std::int64_t rows) {
        const auto begin = first * features;
        kernels.rms_norm_gradients(
            {.gradient = gradient.const_data_ptr<T>() + begin,
             .x = x.const_data_ptr<T>() + begin,
             .weight = wanted[0] ? weight.const_data_ptr<T>() : nullptr,
             .inverse = saved[2].const_data_ptr<T>() + first,
             .of_x = wanted[0] ? of_x.mutable_data_ptr<T>() + begin : nullptr,
             .of_weight = wanted[1] ? of_weight.mutable_data_ptr<T>() + part * features : nullptr},
            rows, features);
      });
    });
    return {of_x, wanted[1] ? (parts == 1 ? of_weight[0] : of_weight.sum(0)) : at::Tensor()};
  }

  static variable_list atens_derivatives(const at::Tensor& of_y, const variable_list& saved,
                                         std::array<bool, 2> wanted) {
    const at::Tensor& x = saved[0];
    const at::Tensor& inverse_root = saved[2];
    const at::Tensor normalised = over_root_mean_square(x, inverse_root);
    const at::Tensor wide = of_y.to(inverse_root.scalar_type());
    variable_list found(2);
    if (wanted[0]) {
      const at::Tensor scaled = wide.mul(saved[1]);
      const at::Tensor share = scaled.mul(normalised).mean(-1, /*keepdim=*/true);
      found[0] = scaled.sub(normalised.mul(share)).mul_(inverse_root).to(x.scalar_type());
    }
    if (wanted[1]) {
      found[1] = normalised.mul(wide).flatten(0, -2).sum(0).to(saved[1].scalar_type());
    }
    return found;
  }
};

class GatedSilu : public torch::autograd::Function<GatedSilu> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    const at::Tensor dense = gate_up.contiguous();
    context->save_for_backward({dense});
    const std::int64_t hidden = dense.size(-1) / 2;
    auto shape = dense.sizes().vec();
    shape.back() = hidden;
    at::Tensor gated = at::empty(shape, dense.options());
    with_row_kernels(dense, [&](auto zero, const auto& kernels) {
      using T = decltype(zero);
      for_rows(gated.numel() / hidden, hidden, [&](std::int64_t first, std::int64_t rows) {
        kernels.gate(dense.const_data_ptr<T>() + 2 * first * hidden,
                     gated.mutable_data_ptr<T>() + first * hidden, rows, hidden);
      });
    });
    return gated;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    const at::Tensor gradient = gradients[0].contiguous();
    const std::int64_t hidden = gradient.size(-1);
    at::Tensor of_gate_up = at::empty_like(gate_up);
    with_row_kernels(gate_up, [&](auto zero, const auto& kernels) {
      using T = decltype(zero);
      for_rows(gradient.numel() / hidden, hidden, [&](std::int64_t first, std::int64_t rows) {
        kernels.gate_gradient(gradient.const_data_ptr<T>() + first * hidden,
                              gate_up.const_data_ptr<T>() + 2 * first * hidden,
                              of_gate_up.mutable_data_ptr<T>() + 2 * first * hidden, rows, hidden);
      });
    });
    return {of_gate_up};
  }
};

/// Writes x, [..., features of a head], rotated by the angles or, with the negative sine, back.
void rotate(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine,
            const at::Tensor& rotated) {
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor first = x.narrow(-1, 0, half);
  const at::Tensor second = x.narrow(-1, half, half);
  at::Tensor to_first = rotated.narrow(-1, 0, half);
  at::Tensor to_second = rotated.narrow(-1, half, half);
  at::mul_out(to_first, first, cosine).addcmul_(second, sine, -1);
  at::mul_out(to_second, second, cosine).addcmul_(first, sine);
}

class SpreadHeads : public torch::autograd::Function<SpreadHeads> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& grouped,
                            const at::Tensor& cosine, const at::Tensor& sine, std::int64_t groups,
                            std::int64_t queries) {
    const bool own = takes_row_kernels(grouped);
    context->save_for_backward({cosine, sine});
    context->saved_data["groups"] = groups;
    context->saved_data["queries"] = queries;
    context->saved_data["own"] = own;
    const at::Tensor heads = grouped.unflatten(2, {groups, queries + 2, -1});
    at::Tensor spread = at::empty(
        {grouped.size(0), grouped.size(1), 3, groups, queries, heads.size(-1)}, grouped.options());
    if (own) {
      with_row_kernels(grouped, [&](auto zero, const auto& kernels) {
        run_kernel(kernels.spread_heads, zero, grouped.contiguous(), spread, {cosine, sine},
                   {groups, queries});
      });
      return spread.flatten(2);
    }
    rotate(heads.narrow(3, 0, queries), cosine, sine, spread.select(2, 0));
    const at::Tensor keys = spread.select(2, 1);
    rotate(heads.narrow(3, queries, 1), cosine, sine, keys.narrow(3, 0, 1));
    if (queries > 1) keys.narrow(3, 1, queries - 1).copy_(keys.narrow(3, 0, 1));
    spread.select(2, 2).copy_(heads.narrow(3, queries + 1, 1));
    return spread.flatten(2);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const std::int64_t groups = context->saved_data.at("groups").toInt();
    const std::int64_t queries = context->saved_data.at("queries").toInt();
    const at::Tensor spread = gradients[0].unflatten(2, {3, groups, queries, -1});
    at::Tensor heads = at::empty(
        {spread.size(0), spread.size(1), groups, queries + 2, spread.size(-1)}, spread.options());
    if (context->saved_data.at("own").toBool()) {
      with_row_kernels(spread, [&](auto zero, const auto& kernels) {
        run_kernel(kernels.gather_heads, zero, spread.contiguous(), heads, {saved[0], saved[1]},
                   {groups, queries});
      });
      return {heads.flatten(2), {}, {}, {}, {}};
    }
    const at::Tensor back = saved[1].neg();
    rotate(spread.select(2, 0), saved[0], back, heads.narrow(3, 0, queries));
    rotate(spread.select(2, 1).sum(3, /*keepdim=*/true), saved[0], back,
           heads.narrow(3, queries, 1));
    at::Tensor values = heads.select(3, queries + 1);
    at::sum_out(values, spread.select(2, 2), at::IntArrayRef{3});
    return {heads.flatten(2), {}, {}, {}, {}};
  }

 private:
  template <class Kernel, typename T>
  static void run_kernel(Kernel kernel, T /*zero*/, const at::Tensor& from, const at::Tensor& to,
                         const Rotation& angles, const GroupedHeads& heads) {
    const std::int64_t rows = from.size(0) * from.size(1);
    const kernels::Angles<T> turns{angles.cosine.const_data_ptr<T>(),
                                   angles.sine.const_data_ptr<T>()};
    const kernels::GroupedHeads shape{.sequence = from.size(1),
                                      .groups = heads.groups,
                                      .queries = heads.queries,
                                      .features = 2 * angles.cosine.size(-1)};
    for_rows(rows, to.numel() / rows, [&](std::int64_t first, std::int64_t count) {
      kernel(from.const_data_ptr<T>(), to.mutable_data_ptr<T>(), turns, shape, first, count);
    });
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight) {
  if (uses_reference_kernels() && !current_deferred_weight_gradients()) {
    return at::rms_norm(x, weight.sizes(), weight, kRmsNormEpsilon);
  }
  return RmsNorm::apply(x, weight);
}

at::Tensor gated_silu(const at::Tensor& gate_up) {
  if (takes_row_kernels(gate_up)) return GatedSilu::apply(gate_up);
  const auto parts = gate_up.chunk(2, -1);
  return at::silu(parts[0]) * parts[1];
}

at::Tensor spread_heads(const at::Tensor& grouped, const Rotation& angles,
                        const GroupedHeads& heads) {
  return SpreadHeads::apply(grouped, angles.cosine, angles.sine, heads.groups, heads.queries);
}

}  // namespace stratagem::models
