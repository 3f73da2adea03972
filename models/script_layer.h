// A layer that is a submodule of a TorchScript file: what `--model script:FILE` trains.
#pragma once

#include <memory>

#include "models/layer.h"

namespace stratagem::models {

class ScriptSource;

/// Calls a TorchScript submodule. Its parameters and buffers begin with the values of the file, and
/// have its names.
class ScriptLayer : public Layer {
 public:
  /// `source` may be shared by several layers: each has tensors of its own. Throws
  /// std::invalid_argument, in one line, for a frozen parameter.
  explicit ScriptLayer(const std::shared_ptr<const ScriptSource>& source);
  ~ScriptLayer() override;

  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
  LayerFlops flops(const Shape& input) const override;
  void set_training(bool training) override;

  /// Returns whether the submodule has a ReLU, at which roundings are magnified.
  bool rectifies() const;

 private:
  struct Script;
  std::unique_ptr<Script> script_;
};

}  // namespace stratagem::models
