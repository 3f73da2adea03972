#include "models/cpu_kernels/reference_kernels.h"

#include <utility>

namespace stratagem::models {
namespace {

// Thread-local like at::GradMode, because every device has its own thread.
thread_local bool reference_kernels = false;

}  // namespace

bool uses_reference_kernels() { return reference_kernels; }

void use_reference_kernels(bool reference) { reference_kernels = reference; }

ReferenceKernelsGuard::ReferenceKernelsGuard(bool reference)
    : previous_(std::exchange(reference_kernels, reference)) {}

ReferenceKernelsGuard::~ReferenceKernelsGuard() { reference_kernels = previous_; }

}  // namespace stratagem::models
