#include "strategies/distributed/same_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <stdexcept>

#include "strategies/runtime/parse.h"
#include "strategies/schedules/collective_calls.h"

namespace stratagem::distributed {
namespace {

/// Writes three kinds of lines: a group's name, its ranks and, indented, its calls.
std::string to_text(const strategies::CallLists& lists) {
  std::string text = "\n";  // never empty
  for (const auto& [name, group] : lists) {
    text += fmt::format("{}\n{}\n", name, fmt::join(group.ranks, " "));
    for (const std::string& call : group.calls) text += fmt::format(" {}\n", call);
  }
  return text;
}

strategies::CallLists from_text(const std::string& text) {
  strategies::CallLists lists;
  std::istringstream lines(text);
  strategies::GroupCalls* group = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    if (line.starts_with(' ') && group != nullptr) {
      group->calls.push_back(line.substr(1));
      continue;
    }
    group = &lists[line];
    std::getline(lines, line);
    for (const std::string_view rank : runtime::split(line, ' ')) {
      group->ranks.push_back(runtime::number_in<int>(rank).value());
    }
  }
  return lists;
}

std::string difference_of(RankContext& ranks, const strategies::CallLists& own) {
  std::vector<strategies::CallLists> by_rank;
  for (const std::string& text : ranks.all_gather(to_text(own))) by_rank.push_back(from_text(text));
  return schedules::first_difference(by_rank);
}

}  // namespace

void require_same_calls(RankContext& ranks, const strategies::CallLists& own) {
  if (difference_of(ranks, schedules::digests_of(own)).empty()) return;
  throw std::invalid_argument(difference_of(ranks, own));
}

}  // namespace stratagem::distributed
