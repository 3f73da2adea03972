#include "strategies/runtime/meeting.h"

#include <fmt/format.h>

namespace stratagem::runtime {

std::string MeetingPlace::name() const {
  return file.empty() ? fmt::format("{}:{}", address, port) : file;
}

}  // namespace stratagem::runtime
