// A submodule of a TorchScript file: what a ScriptLayer copies, and what it costs.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <exception>
#include <map>
#include <mutex>
#include <string>

#include "models/layer.h"

namespace stratagem::models {

/// Returns the first line of an error, without LibTorch's backtrace.
std::string reason_of(const std::exception& error);

/// Calls a module with one tensor. Throws what the module throws, or std::invalid_argument if it
/// returns no tensor.
at::Tensor call(const torch::jit::Module& module, const at::Tensor& input);

/// A submodule with the values of its file, in evaluation mode. Layers share it.
class ScriptSource {
 public:
  /// The results of one sample.
  struct Sizes {
    Shape output;
    LayerFlops flops;
  };

  ScriptSource(std::string name, torch::jit::Module module, at::ScalarType input);

  const std::string& name() const { return name_; }
  const torch::jit::Module& module() const { return module_; }
  /// Returns whether the submodule has a ReLU, at which roundings are magnified.
  bool rectifies() const { return rectifies_; }

  /// Runs one sample of a shape, once: LibTorch has no convolution on the meta device in C++.
  /// Counts the matrix products, convolutions and attention of the forward pass; attention as two
  /// products over the whole square of positions. Throws like call().
  Sizes sizes(Shape sample) const;

 private:
  std::string name_;
  torch::jit::Module module_;
  at::ScalarType input_;
  bool rectifies_;
  mutable std::mutex mutex_;
  mutable std::map<Shape, Sizes> known_;
};

}  // namespace stratagem::models
