// Workload: model, synthetic data, loss, optimizer, number format and seed of a training. Two
// workloads with equal options make equal models and batches, on any machine whose torch draws the
// same random numbers, and the same values (rounded) for every dtype. A parameter's name and the
// seed decide its first values, so that a rank can draw only its own.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/cpu_kernels/dropout.h"
#include "models/loss.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/registry/registry.h"
#include "models/token_data.h"

namespace stratagem::models {

enum class Targets {
  classes,  // uniform class indices, in the loss's form
  real,     // standard normal [n, classes], for mse
};

struct WorkloadOptions {
  std::string model = "resnet50";
  std::int64_t batch = 1;            // samples in a global batch
  std::int64_t image_size = 0;       // pixels a side; 0: the model's default
  std::int64_t sequence_length = 0;  // the tokens of a sample; 0: the model's longest
  TokenSource tokens = TokenSource::random;
  double width = 1.0;  // see ModelOptions
  at::ScalarType dtype = at::kFloat;
  // Layers compute in `dtype`, also gradients; parameters, running statistics, the loss and the
  // optimizer's state are float32. See Workload::master_dtype().
  bool mixed = false;
  // The factor of the loss before the backward pass, by which gradients are divided after it. If it
  // is `dynamic`, it falls when gradients are not finite. See LossScale.
  double loss_scale = 1;
  bool dynamic_loss_scale = false;
  std::int64_t loss_scale_hysteresis = 1;                    // for a dynamic one
  at::MemoryFormat format = at::MemoryFormat::ChannelsLast;  // for images and 4-d parameters
  Loss loss = Loss::mse;
  OptimizerOptions optimizer = {};
  std::uint64_t seed = 0;
  std::int64_t classes = 0;   // 0: the model's default
  std::int64_t features = 0;  // for a model that takes sizes; 0: its default
  bool bias = true;           // for a model that takes sizes
  double dropout = 0;         // for a model with dropout: the rate
  Targets targets = Targets::classes;
};

struct Batch {
  at::Tensor inputs;   // [n, 3, size, size], [n, features] or token ids [n, sequence]
  at::Tensor targets;  // in the loss's form: real or one-hot [n, classes], or indices [n], or
                       // for tokens [n, sequence] (int64)
  // In the training. Masks of dropout depend on it.
  std::int64_t number = 0;
  // The rows are those of replica 0, 1, ..., which take every dealt_to-th sample in turn.
  std::int64_t dealt_to = 1;

  std::int64_t size() const { return inputs.size(0); }

  /// Returns its size. Throws std::invalid_argument, in one line, if it has no samples or if the
  /// numbers of inputs and targets differ.
  std::int64_t checked_size() const;

  /// Returns whether it has the samples of `other`, which may have no tensors. Two tensors on the
  /// same memory do not count as equal: the content of `other` was overwritten.
  bool is_same(const Batch& other) const;

  /// Returns samples [start, start + count) as views.
  Batch slice(std::int64_t start, std::int64_t count) const;
};

class Workload {
 public:
  /// Throws std::invalid_argument, in one line: unknown model, batch below 1, an image that is too
  /// small, a sequence that is too long, a loss that does not fit the model, a width, class count
  /// or optimizer option out of range.
  explicit Workload(const WorkloadOptions& options);

  const WorkloadOptions& options() const { return options_; }
  const ModelEntry& entry() const { return *entry_; }

  /// Return the values in use, with defaults filled in; image_size() is 0 for vectors.
  std::int64_t image_size() const;
  std::int64_t sequence_length() const;  // 0 unless the inputs are tokens
  std::int64_t classes() const;
  std::int64_t features() const;

  /// Returns the dtype of the updated parameters: the workload's, or float32 if a 16-bit one is
  /// mixed with it (Micikevicius et al. 2018, "Mixed Precision Training", section 3.1).
  at::ScalarType master_dtype() const;

  Shape input_shape(std::int64_t batch) const;

  /// Makes the model in the master dtype, in training mode, on the meta device without memory.
  Model make_meta_model() const;

  /// Draws the layer's tensors without memory and converts the rest: on the device, in the master
  /// dtype and the workload's memory format. Needs memory for the layer and one more tensor.
  void materialise(Layer& layer, const at::Device& device) const;

  /// Makes the whole model on the CPU.
  Model make_model() const;

  std::int64_t parameter_count() const;

  /// Makes batch number `index` in host memory: standard normal inputs and uniform labels, or
  /// tokens and the tokens after them.
  Batch make_batch(std::uint64_t index) const;

  /// Returns the place of the rows of a global batch from `first_row` on.
  SamplePlace place_of(const Batch& batch, std::int64_t first_row) const {
    return {.seed = options_.seed,
            .batch = batch.number,
            .first_row = first_row,
            .rows = batch.size(),
            .dealt_to = batch.dealt_to};
  }

  Optimizer make_optimizer(std::vector<NamedTensor> parameters) const;

  /// Returns the loss in the master dtype. `weight` is the micro-batch's share of the global batch;
  /// see models/loss.h.
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets, double weight) const;

  /// Returns the number of correct predictions, [] (int64); undefined for real targets.
  at::Tensor correct(const at::Tensor& output, const at::Tensor& targets) const;

 private:
  WorkloadOptions options_;
  const ModelEntry* entry_;
};

}  // namespace stratagem::models
