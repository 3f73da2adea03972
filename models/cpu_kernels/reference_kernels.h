// The one switch that turns the kernels of this folder off; every kernel that differs from ATen
// checks it. The oracle sets it, so that a proof shares none of our kernels with the proven code,
// and so do the devices of rows with `--kernels reference`.
#pragma once

namespace stratagem::models {

/// Returns whether this thread computes only with ATen's functions. Each has its own backward pass,
/// or, while weight gradients are deferred or activations recomputed, one of ours made of ATen's
/// derivatives.
bool uses_reference_kernels();

/// Sets the switch on this thread for good, as a device does when it starts.
void use_reference_kernels(bool reference);

/// Sets the switch on this thread until the end of the scope.
class ReferenceKernelsGuard {
 public:
  explicit ReferenceKernelsGuard(bool reference = true);
  ~ReferenceKernelsGuard();
  ReferenceKernelsGuard(const ReferenceKernelsGuard&) = delete;
  ReferenceKernelsGuard& operator=(const ReferenceKernelsGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace stratagem::models
