#include "models/cpu_kernels/kernel_choice.h"

#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::models {
namespace {

// Thread-local like the switch, because every device has its own thread.
std::map<std::string, std::string>& left_to_aten() {
  thread_local std::map<std::string, std::string> functions;
  return functions;
}

// Returns the reason why ATen has to compute x, or null if there is none.
const char* obstacle(const at::Tensor& x) {
  if (at::isReducedFloatingType(x.scalar_type())) return "reduced precision";
  return x.is_contiguous(at::MemoryFormat::ChannelsLast) ? nullptr : "contiguous memory format";
}

}  // namespace

bool may_take_own_kernels(const at::Tensor& x, const char* function) {
  if (uses_reference_kernels() || !x.is_cpu()) return false;
  const char* const why = obstacle(x);
  if (why != nullptr) record_left_to_aten(x, function, why);
  return why == nullptr;
}

void record_left_to_aten(const at::Tensor& x, const char* function, const char* why) {
  if (x.is_cpu() && !uses_reference_kernels()) left_to_aten()[function] = why;
}

bool takes_row_kernels(const at::Tensor& x) {
  const bool has_format = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  return has_format && x.is_cpu() && !uses_reference_kernels();
}

const std::map<std::string, std::string>& functions_left_to_aten() { return left_to_aten(); }

}  // namespace stratagem::models
