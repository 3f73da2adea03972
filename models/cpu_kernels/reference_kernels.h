// The one switch that turns the kernels of this folder off. The oracle runs with it, so that a
// proof shares none of our kernels with what it proves: whatever computes otherwise than ATen asks
// here.
#pragma once

namespace stratagem::models {

/// Whether this thread computes with ATen's functions alone, one by one, each with its own backward
/// pass.
bool uses_reference_kernels();

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
