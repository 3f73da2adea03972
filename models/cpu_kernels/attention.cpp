#include "models/cpu_kernels/attention.h"

#include <ATen/ATen.h>
#include <ATen/cpu/Utils.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <type_traits>
#include <vector>

#include "models/cpu_kernels/kernels/attention_kernels.h"
#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/parallel_rows.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::models {
namespace {

using kernels::AttentionShape;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The type in which the kernels compute values stored as Stored.
template <typename Stored>
using Computed = std::conditional_t<std::is_same_v<Stored, double>, double, float>;

// One head of one sample in a tensor [n, sequence, parts, heads, features of a head].
template <typename Stored>
struct HeadRows {
  Stored* data;
  std::int64_t row;  // the distance between positions
};

template <typename Stored>
class AttentionHeads {
 public:
  using T = Computed<Stored>;

  AttentionHeads(const at::Tensor& qkv, std::int64_t heads)
      : n_(qkv.size(0)),
        heads_(heads),
        features_(qkv.size(2) / 3),
        shape_(kernels::attention_shape(qkv.size(1), features_ / heads)),
        scale_(static_cast<T>(1 / std::sqrt(static_cast<double>(shape_.features)))) {}

  void forward(const at::Tensor& qkv, const at::Tensor& mixed) const {
    for_each_head(4, kernels::forward_scratch(shape_), [&](std::int64_t head, T* memory) {
      const kernels::AttentionForward<T> work{.query = matrix(memory, 0),
                                              .key = matrix(memory, 1),
                                              .value = matrix(memory, 2),
                                              .mixed = matrix(memory, 3),
                                              .scratch = matrix(memory, 4)};
      load_parts(qkv, head, memory);
      kernels::best_kernels<kernels::AttentionKernels<T>>().forward(work, shape_);
      store(work.mixed, 1, rows_of(mixed, head, 0, 1));
    });
  }

  void backward(const at::Tensor& qkv, const at::Tensor& mixed_gradient,
                const at::Tensor& qkv_gradient) const {
    for_each_head(7, kernels::backward_scratch(shape_), [&](std::int64_t head, T* memory) {
      const kernels::AttentionBackward<T> work{.query = matrix(memory, 0),
                                               .key = matrix(memory, 1),
                                               .value = matrix(memory, 2),
                                               .mixed_gradient = matrix(memory, 3),
                                               .query_gradient = matrix(memory, 4),
                                               .key_gradient = matrix(memory, 5),
                                               .value_gradient = matrix(memory, 6),
                                               .scratch = matrix(memory, 7)};
      load_parts(qkv, head, memory);
      load(rows_of(mixed_gradient, head, 0, 1), 1, matrix(memory, 3));
      kernels::best_kernels<kernels::AttentionKernels<T>>().backward(work, shape_);
      store(work.query_gradient, scale_, rows_of(qkv_gradient, head, 0, 3));
      store(work.key_gradient, 1, rows_of(qkv_gradient, head, 1, 3));
      store(work.value_gradient, 1, rows_of(qkv_gradient, head, 2, 3));
    });
  }

 private:
  T* matrix(T* memory, std::int64_t index) const {
    return memory + index * shape_.sequence * shape_.row;
  }

  // Calls work(head of all samples, zeroed memory of `matrices` and the kernel's scratch).
  template <class Work>
  void for_each_head(std::int64_t matrices, std::int64_t scratch, const Work& work) const {
    const std::int64_t values = matrices * shape_.sequence * shape_.row + scratch;
    const std::int64_t parts = parallel_parts(n_ * heads_, shape_.sequence * shape_.sequence);
    // The device's thread allocates, because ATen's threads have no memory account.
    const at::Tensor memory = at::zeros({parts, values}, c10::CppTypeToScalarType<T>::value);
    T* const all = memory.mutable_data_ptr<T>();
    for_each_part(parts, n_ * heads_,
                  [&](std::int64_t part, std::int64_t first, std::int64_t count) {
                    for (std::int64_t head = first; head < first + count; ++head) {
                      work(head, all + part * values);
                    }
                  });
  }

  HeadRows<Stored> rows_of(const at::Tensor& tensor, std::int64_t head, std::int64_t part,
                           std::int64_t parts) const {
    const std::int64_t row = parts * features_;
    const std::int64_t column = part * features_ + head % heads_ * shape_.features;
    return {tensor.mutable_data_ptr<Stored>() + head / heads_ * shape_.sequence * row + column,
            row};
  }

  void load_parts(const at::Tensor& qkv, std::int64_t head, T* memory) const {
    load(rows_of(qkv, head, 0, 3), scale_, matrix(memory, 0));
    load(rows_of(qkv, head, 1, 3), 1, matrix(memory, 1));
    load(rows_of(qkv, head, 2, 3), 1, matrix(memory, 2));
  }

  void load(const HeadRows<Stored>& from, T factor, T* to) const {
    for (std::int64_t position = 0; position < shape_.sequence; ++position) {
      const Stored* const values = from.data + position * from.row;
      T* const row = to + position * shape_.row;
      for (std::int64_t i = 0; i < shape_.features; ++i) {
        row[i] = static_cast<T>(values[i]) * factor;
      }
    }
  }

  void store(const T* from, T factor, const HeadRows<Stored>& to) const {
    for (std::int64_t position = 0; position < shape_.sequence; ++position) {
      const T* const row = from + position * shape_.row;
      Stored* const values = to.data + position * to.row;
      for (std::int64_t i = 0; i < shape_.features; ++i) {
        values[i] = static_cast<Stored>(row[i] * factor);
      }
    }
  }

  std::int64_t n_;
  std::int64_t heads_;
  std::int64_t features_;  // the features of all heads
  AttentionShape shape_;
  T scale_;
};

// Calls work(heads) with the heads of the tensor's number format.
template <class Work>
void with_heads(const at::Tensor& qkv, std::int64_t heads, const Work& work) {
  switch (qkv.scalar_type()) {
    case at::kDouble:
      return work(AttentionHeads<double>(qkv, heads));
    case at::kBFloat16:
      return work(AttentionHeads<at::BFloat16>(qkv, heads));
    case at::kHalf:
      return work(AttentionHeads<at::Half>(qkv, heads));
    default:
      return work(AttentionHeads<float>(qkv, heads));
  }
}

class CausalAttention : public torch::autograd::Function<CausalAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, std::int64_t heads) {
    context->save_for_backward({qkv});
    context->saved_data["heads"] = heads;
    const at::Tensor whole = qkv.contiguous();
    at::Tensor mixed = at::empty({qkv.size(0), qkv.size(1), qkv.size(2) / 3}, qkv.options());
    with_heads(whole, heads, [&](const auto& all) { all.forward(whole, mixed); });
    return mixed;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "attention: no second derivative; use ATen's kernel by ReferenceKernelsGuard");
    const at::Tensor qkv = context->get_saved_variables()[0].contiguous();
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor result = at::empty_like(qkv);
    with_heads(qkv, context->saved_data.at("heads").toInt(),
               [&](const auto& all) { all.backward(qkv, gradient, result); });
    return {result, {}};
  }
};

bool has_matrix_units() {
  const auto facts = at::cpu::get_cpu_capabilities();
  const auto tiles = facts.find("amx_tile");
  return tiles != facts.end() && tiles->second.toBool();
}

at::Tensor atens(const at::Tensor& qkv, std::int64_t heads) {
  const std::int64_t n = qkv.size(0);
  const std::int64_t sequence = qkv.size(1);
  const std::int64_t features = qkv.size(2) / 3;
  // The parts are unbound and not selected, so that three gradients become one tensor in one pass.
  const std::vector<at::Tensor> parts =
      qkv.view({n, sequence, 3, heads, features / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
  const at::Tensor mixed =
      at::scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt,
                                       /*dropout_p=*/0, /*is_causal=*/true);
  return mixed.transpose(1, 2).reshape({n, sequence, features});
}

}  // namespace

bool takes_own_attention(const at::Tensor& qkv) {
  static const bool left_to_aten = has_matrix_units();
  if (uses_reference_kernels() || !qkv.is_cpu() || qkv.numel() == 0) return false;
  const auto type = qkv.scalar_type();
  const bool has_16_bits = type == at::kBFloat16 || type == at::kHalf;
  return type == at::kFloat || type == at::kDouble || (has_16_bits && !left_to_aten);
}

at::Tensor own_causal_attention(const at::Tensor& qkv, std::int64_t heads) {
  return CausalAttention::apply(qkv, heads);
}

at::Tensor causal_attention(const at::Tensor& qkv, std::int64_t heads) {
  TORCH_CHECK(qkv.dim() == 3 && qkv.size(2) % (3 * heads) == 0, "attention of ", heads,
              " heads expects [n, sequence, 3 * features], features divisible by heads, not ",
              qkv.sizes());
  return takes_own_attention(qkv) ? own_causal_attention(qkv, heads) : atens(qkv, heads);
}

}  // namespace stratagem::models
