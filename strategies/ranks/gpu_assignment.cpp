#include "strategies/ranks/gpu_assignment.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace stratagem::ranks {
namespace {

constexpr const char* sharing = "repeat a number in --device-ids, as in 0+0, to share a GPU";

std::string gpus(std::size_t count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

std::string are_gpus(std::size_t count) {
  return fmt::format("{} {}", count == 1 ? "is" : "are", gpus(count));
}

[[noreturn]] void refuse_too_few(const std::vector<VisibleGpus>& ranks, std::size_t rank,
                                 std::int64_t wanted, std::size_t left) {
  const VisibleGpus& seen = ranks[rank];
  if (ranks.size() == 1 && seen.identities.empty()) {
    throw std::invalid_argument(
        "--device cuda: no GPU can be used here; see `stratagem doctor`, or use --device cpu");
  }
  if (ranks.size() == 1) {
    throw std::invalid_argument(
        fmt::format("--device cuda: {} devices need a GPU each, and there {}; {}", wanted,
                    are_gpus(seen.identities.size()), sharing));
  }
  throw std::invalid_argument(fmt::format(
      "--device cuda: rank {} on {} needs {}, but {} of its {} visible GPUs {} free; {} "
      "with --backend gloo",
      rank, seen.host, gpus(static_cast<std::size_t>(wanted)), left, seen.identities.size(),
      left == 1 ? "is" : "are", sharing));
}

[[noreturn]] void refuse_number(const std::vector<VisibleGpus>& ranks, std::size_t rank,
                                std::int64_t number) {
  const std::string who =
      ranks.size() == 1 ? "" : fmt::format(" for rank {} on {}", rank, ranks[rank].host);
  throw std::invalid_argument(fmt::format("--device-ids: GPU {} does not exist{}; there {}", number,
                                          who, are_gpus(ranks[rank].identities.size())));
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

void require_gpus_of_their_own(const std::vector<VisibleGpus>& ranks,
                               const std::vector<std::vector<int>>& assigned) {
  std::map<std::pair<std::string, std::string>, std::pair<std::size_t, int>> drivers;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& [host, identities] = ranks[rank];
    for (const int number : assigned[rank]) {
      const std::string& identity = identities.at(static_cast<std::size_t>(number));
      const auto [other, others_number] =
          drivers.try_emplace({host, identity}, rank, number).first->second;
      if (other == rank) continue;
      throw std::invalid_argument(fmt::format(
          "--backend nccl: ranks {} and {} share a GPU of {} (GPU {} of rank {} is GPU {} "
          "of rank {}), but NCCL needs one for each rank; use --backend gloo",
          other, rank, host, others_number, other, number, rank));
    }
  }
}

}  // namespace stratagem::ranks
