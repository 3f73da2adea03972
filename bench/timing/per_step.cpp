#include "bench/timing/per_step.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace stratagem::bench {

namespace {

std::int64_t share(const std::string& collective, const char* what, std::int64_t count,
                   std::int64_t steps) {
  if (count % steps != 0) {
    throw std::runtime_error(fmt::format("{}: {} {} in {} steps, so steps differ in what they do",
                                         collective, count, what, steps));
  }
  return count / steps;
}

}  // namespace

strategies::CommunicationCounts per_step(const strategies::CommunicationCounts& counts,
                                         std::int64_t steps) {
  strategies::CommunicationCounts result;
  for (const auto& [collective, count] : counts) {
    result[collective] = {
        .calls = share(collective, "calls", count.calls, steps),
        .payload_bytes = share(collective, "payload bytes", count.payload_bytes, steps),
        .wire_bytes = share(collective, "wire bytes", count.wire_bytes, steps)};
  }
  return result;
}

}  // namespace stratagem::bench
