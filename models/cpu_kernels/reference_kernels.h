// The one switch that turns the kernels of this folder off: whatever computes otherwise than ATen
// asks here. The oracle runs with it, so that a proof shares none of our kernels with what it
// proves, and so do the devices of rows with `--kernels reference`.
#pragma once

namespace stratagem::models {

/// Whether this thread computes with ATen's functions alone, one by one. Each has its own backward
/// pass, or, while weight gradients are deferred, one of two halves made of ATen's derivatives.
bool uses_reference_kernels();

/// Sets that on this thread from now on, as a device does where it starts.
void use_reference_kernels(bool reference);

/// Sets that on this thread until the end of the scope.
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
