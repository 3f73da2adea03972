#include "strategies/distributed/library_log.h"

#include <c10/util/Logging.h>

#include <cstdlib>

namespace stratagem::distributed {

void quiet_library_log() {
  constexpr int fatal_only = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = fatal_only;
}

}  // namespace stratagem::distributed
