// Workload: what is trained, bound together: model, synthetic data, loss, optimizer, number format
// and seed. Two workloads with equal options make equal models and batches, on any machine whose
// torch draws the same random numbers, and the same values (rounded) for every dtype. A parameter
// begins with values that its name and the seed decide, so a rank can draw its own alone.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/loss.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/registry/registry.h"
#include "models/token_data.h"

namespace stratagem::models {

enum class Targets {
  classes,  // uniform class indices, as the loss takes them
  real,     // standard normal [n, classes], for mse
};

struct WorkloadOptions {
  std::string model = "resnet50";
  std::int64_t batch = 1;            // samples in a global batch
  std::int64_t image_size = 0;       // pixels a side; 0 is the model's default
  std::int64_t sequence_length = 0;  // tokens of a sample; 0 is the model's longest
  TokenSource tokens = TokenSource::random;
  double width = 1.0;  // see ModelOptions
  at::ScalarType dtype = at::kFloat;
  // Of `dtype` are only what layers compute with and its gradients; parameters, running statistics,
  // the loss and what the optimizer keeps are of float32. See Workload::master_dtype().
  bool mixed = false;
  // What the loss is multiplied by before the backward pass, and gradients divided by after it; 1:
  // nothing. Where it is `dynamic` it falls when gradients are not finite. See LossScale.
  double loss_scale = 1;
  bool dynamic_loss_scale = false;
  std::int64_t loss_scale_hysteresis = 1;                    // of a dynamic one
  at::MemoryFormat format = at::MemoryFormat::ChannelsLast;  // of images and 4-d parameters
  Loss loss = Loss::mse;
  OptimizerOptions optimizer = {};
  std::uint64_t seed = 0;
  std::int64_t classes = 0;   // 0 is the model's default
  std::int64_t features = 0;  // of a model that takes sizes; 0 is its default
  bool bias = true;           // likewise
  Targets targets = Targets::classes;
};

struct Batch {
  at::Tensor inputs;   // [n, 3, size, size], [n, features] or token ids [n, sequence]
  at::Tensor targets;  // as the loss takes them: real or one-hot [n, classes], or indices [n], or
                       // for tokens [n, sequence] (int64)

  std::int64_t size() const { return inputs.size(0); }

  /// Its size. Throws std::invalid_argument, in one line, for a batch without samples, or with more
  /// of one than of the other.
  std::int64_t checked_size() const;

  /// Whether it has the samples of `other`, which may have no tensors. Two tensors on one piece of
  /// memory do not count as equal: what `other` once held was overwritten.
  bool is_same(const Batch& other) const;

  /// Samples [start, start + count), as views.
  Batch slice(std::int64_t start, std::int64_t count) const;
};

class Workload {
 public:
  /// Throws std::invalid_argument, in one line: unknown model, batch below 1, an image that is too
  /// small, a sequence that is too long, a loss that the model is not trained with, a width, class
  /// count or optimizer option out of range.
  explicit Workload(const WorkloadOptions& options);

  const WorkloadOptions& options() const { return options_; }
  const ModelEntry& entry() const { return *entry_; }

  /// The image size and the number of classes in force, defaults filled in; 0 pixels for vectors.
  std::int64_t image_size() const;
  std::int64_t sequence_length() const;  // 0 but for tokens
  std::int64_t classes() const;
  std::int64_t features() const;

  /// Of the parameters that are updated: the workload's dtype, float32 where a half one is mixed
  /// with it. (Micikevicius et al. 2018, "Mixed Precision Training", section 3.1.)
  at::ScalarType master_dtype() const;

  Shape input_shape(std::int64_t batch) const;

  /// In the master dtype, training, on the meta device: no memory, no values.
  Model make_meta_model() const;

  /// Draws what the layer has no memory for, and converts the rest: on the device, in the
  /// master dtype and the workload's memory format. Besides the layer's there is memory for one
  /// tensor at a time.
  void materialise(Layer& layer, const at::Device& device) const;

  /// The whole model, on the CPU.
  Model make_model() const;

  std::int64_t parameter_count() const;

  /// Batch number `index` in host memory: standard normal inputs and uniform labels, or tokens with
  /// those that follow them.
  Batch make_batch(std::uint64_t index) const;

  Optimizer make_optimizer(std::vector<NamedTensor> parameters) const;

  /// `weight` is the micro-batch's share of the global batch; see models/loss.h. In the master
  /// dtype.
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets, double weight) const;

  /// Correct predictions, [] (int64); undefined where targets are real numbers.
  at::Tensor correct(const at::Tensor& output, const at::Tensor& targets) const;

 private:
  WorkloadOptions options_;
  const ModelEntry* entry_;
};

}  // namespace stratagem::models
