#include "strategies/ranks/gpu_assignment.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <utility>

namespace stratagem::ranks {
namespace {

constexpr const char* sharing = "--device-ids 0+0 lets devices share one";

[[noreturn]] void refuse_too_few(const std::vector<VisibleGpus>& ranks, std::size_t rank,
                                 std::int64_t wanted, std::size_t left) {
  const VisibleGpus& seen = ranks[rank];
  if (ranks.size() == 1) {
    throw std::invalid_argument(fmt::format("--devices: {} are more than the {} GPUs; {}", wanted,
                                            seen.identities.size(), sharing));
  }
  throw std::invalid_argument(fmt::format(
      "--devices: rank {} on {} needs {}, and of the {} GPUs that it sees, the ranks before it "
      "leave {}; {}",
      rank, seen.host, wanted, seen.identities.size(), left, sharing));
}

[[noreturn]] void refuse_number(const std::vector<VisibleGpus>& ranks, std::size_t rank,
                                std::int64_t number) {
  const std::string who =
      ranks.size() == 1 ? "" : fmt::format(" for rank {} on {}", rank, ranks[rank].host);
  throw std::invalid_argument(fmt::format("--device-ids: GPU {} does not exist{}; there are {}",
                                          number, who, ranks[rank].identities.size()));
}

}  // namespace

std::vector<std::vector<int>> assign_gpus(const std::vector<VisibleGpus>& ranks,
                                          std::int64_t devices_per_rank,
                                          const std::vector<std::int64_t>& device_ids) {
  const auto wanted = static_cast<std::size_t>(devices_per_rank);
  std::set<std::pair<std::string, std::string>> taken;
  std::vector<std::vector<int>> assigned;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& [host, identities] = ranks[rank];
    std::vector<int>& own = assigned.emplace_back();
    if (!device_ids.empty()) {
      for (std::size_t device = 0; device < wanted; ++device) {
        const std::int64_t number = device_ids.at(rank * wanted + device);
        if (number >= std::ssize(identities)) refuse_number(ranks, rank, number);
        own.push_back(static_cast<int>(number));
      }
      continue;
    }
    for (std::size_t number = 0; number < identities.size() && own.size() < wanted; ++number) {
      if (taken.emplace(host, identities[number]).second) own.push_back(static_cast<int>(number));
    }
    if (own.size() < wanted) refuse_too_few(ranks, rank, devices_per_rank, own.size());
  }
  return assigned;
}

}  // namespace stratagem::ranks
