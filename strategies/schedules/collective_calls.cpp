#include "strategies/schedules/collective_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "strategies/runtime/content_hash.h"

namespace stratagem::schedules {
namespace {

std::optional<RankGroup> group_of(ActionKind kind) {
  if (is_of_shards(kind)) return RankGroup::shards;
  if (is_of_copies(kind)) return RankGroup::copies;
  if (is_replicas_own(kind)) return RankGroup::norm;
  if (is_tensor_collective(kind) || is_pass(kind)) return RankGroup::tensor;
  if (is_of_replicas(kind)) return RankGroup::replicas;
  return std::nullopt;
}

const std::vector<std::string>& calls_in(const strategies::CallLists& lists,
                                         const std::string& group) {
  static const std::vector<std::string> none;
  const auto found = lists.find(group);
  return found == lists.end() ? none : found->second.calls;
}

}  // namespace

std::vector<Collective> collectives_of(const Schedule& lowered, int device) {
  std::vector<Collective> found;
  for (const Action& action : lowered.actions.at(static_cast<std::size_t>(device))) {
    if (const auto group = group_of(action.kind)) found.push_back({*group, action});
  }
  return found;
}

strategies::CallLists digests_of(const strategies::CallLists& own) {
  strategies::CallLists digests = own;
  for (auto& [name, group] : digests) {
    const std::string all = fmt::format("{}", fmt::join(group.calls, "\n"));
    group.calls = {fmt::format("{:016x}", runtime::content_hash(all))};
  }
  return digests;
}

std::string first_difference(const std::vector<strategies::CallLists>& by_rank) {
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const auto& [name, group] : by_rank[rank]) {
      for (const int member : group.ranks) {
        const auto& own = group.calls;
        const auto& other = calls_in(by_rank.at(static_cast<std::size_t>(member)), name);
        const auto [here, there] = std::ranges::mismatch(own, other);
        if (here == own.end() && there == other.end()) continue;
        return fmt::format(
            "rank {}: call {} in group {} is {}; that of rank {} is {}; its ranks must run the "
            "same strategy with the same options",
            rank, here - own.begin() + 1, name, here == own.end() ? "missing" : *here, member,
            there == other.end() ? "missing" : *there);
      }
    }
  }
  return {};
}

}  // namespace stratagem::schedules
