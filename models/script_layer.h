// A layer that is a submodule of a TorchScript module: what `--model script:FILE` trains.
#pragma once

#include <memory>
#include <string>

#include "models/layer.h"
#include "models/registry/registry.h"

namespace stratagem::models {

/// Calls a TorchScript submodule. Its parameters and buffers begin with the values of the file, and
/// have its names.
class ScriptLayer : public Layer {
 public:
  /// A submodule as it was read from a file; defined in script_layer.cpp.
  class Source;

  /// `source` may be shared by several layers: each has tensors of its own. Throws
  /// std::invalid_argument, in one line, for a frozen parameter.
  explicit ScriptLayer(const std::shared_ptr<const Source>& source);
  ~ScriptLayer() override;

  at::Tensor forward(const at::Tensor& input) override;
  /// Runs one sample through the module of the file.
  Shape output_shape(const Shape& input) const override;
  /// Counts the matrix products and convolutions of one sample's forward pass. Each needs one
  /// product for each of its two gradients.
  LayerFlops flops(const Shape& input) const override;
  void set_training(bool training) override;

  /// Returns whether the submodule has a ReLU, at which roundings are magnified.
  bool rectifies() const;

 private:
  struct Script;
  std::unique_ptr<Script> script_;
};

/// Reads a TorchScript file with the metadata that tools/python/export_model.py adds. The layers
/// are the module's children, in the order of their definition; a Sequential child is replaced by
/// its own children.
///
/// Throws std::invalid_argument, in one line: a file that is not TorchScript, no metadata, no
/// children, a child that is not callable with one tensor, tensors that two children share,
/// dropout, or a forward() that is not its children in order.
ModelEntry read_script_model(const std::string& file);

}  // namespace stratagem::models
