#include "reports/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reports/row_comparison.h"
#include "reports/short_names.h"

namespace stratagem::reports {
namespace {

constexpr std::size_t most_named = 3;

struct Candidate {
  const RowSummary* row;
  const std::string* name;
};

std::string join(const std::vector<Candidate>& candidates) {
  std::string text;
  for (std::size_t index = 0; index < candidates.size(); ++index) {
    if (index == most_named) {
      return text + fmt::format(" and {} more", candidates.size() - most_named);
    }
    const bool last = index + 1 == candidates.size();
    text += (index == 0 ? "" : last ? " and " : ", ") + *candidates[index].name;
  }
  return text;
}

std::string over_single(const RowSummary& row) {
  const Ratio* ratio = row.speed_up();
  if (ratio == nullptr || std::ranges::count(row.cannot_tell, *row.baseline) > 0) return "";
  return fmt::format("{:.2f}x over single ({:.2f} to {:.2f})", ratio->value, ratio->low,
                     ratio->high);
}

/// Returns why the first cannot be distinguished from its rivals, of `pairs` compared ones.
std::string reason(const Candidate& best, const std::vector<Candidate>& rivals, std::size_t pairs) {
  if (best.row->tutorial) return "the tutorial's protocol makes one launch of each";
  for (const Candidate* candidate : {&best, &rivals.front()}) {
    if (candidate->row->disturbed) return "every launch of " + *candidate->name + " was disturbed";
  }
  std::size_t launches = best.row->rounds_ms.size();
  bool disturbed = false;
  const auto needed = static_cast<std::size_t>(launches_to_tell_apart(pairs));
  for (const Candidate& rival : rivals) {
    launches = std::min(launches, rival.row->rounds_ms.size());
    disturbed = disturbed || rival.row->samples_ms.size() < needed ||
                !best.row->ratios.contains(rival.row->name);
  }
  disturbed = disturbed || best.row->samples_ms.size() < needed;
  if (launches >= needed && disturbed) return "too many of their launches were disturbed";
  if (launches >= needed) return "their times overlap";
  return fmt::format("{} launch{} of each, {} are needed for this table", launches,
                     launches == 1 ? "" : "es", needed);
}

/// `candidates`, two or more, do the same work, the fastest first.
std::string ranking(const std::vector<Candidate>& candidates, std::size_t pairs) {
  const Candidate& best = candidates.front();
  std::vector<Candidate> rivals;
  std::copy_if(candidates.begin() + 1, candidates.end(), std::back_inserter(rivals),
               [&](const Candidate& other) {
                 return std::ranges::count(best.row->cannot_tell, other.row->name) > 0;
               });
  const std::string gain = over_single(*best.row);
  if (rivals.empty()) {
    return "fastest: " + *best.name + (gain.empty() ? "" : ", " + gain);
  }
  return fmt::format("cannot tell {} from {}: {}{}", *best.name, join(rivals),
                     reason(best, rivals, pairs), gain.empty() ? "" : "; the first " + gain);
}

// Returns one line, and a second for the strategies over several devices if one device wins.
std::vector<std::string> verdict_lines(const std::vector<Candidate>& candidates,
                                       std::size_t pairs) {
  if (candidates.size() < 2) return {};  // a single row wins nothing
  std::vector<std::string> lines = {ranking(candidates, pairs)};
  std::vector<Candidate> parallel;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(parallel),
               [](const Candidate& candidate) { return candidate.row->strategy != "single"; });
  if (candidates.front().row->strategy == "single" && parallel.size() > 1) {
    lines.push_back("over several devices: " + ranking(parallel, pairs));
  }
  return lines;
}

/// Names each workload by the parts that the others lack. A workload without parts of its own is
/// named by model and batch.
std::vector<std::string> labels_of(const std::vector<std::string>& workloads) {
  std::vector<std::string> rooted;  // the first part of a name always stays
  for (const std::string& workload : workloads) rooted.push_back("/" + workload);
  std::vector<std::string> labels = shorten(rooted).names;
  for (std::size_t index = 0; index < labels.size(); ++index) {
    const std::string& whole = workloads[index];
    labels[index] =
        labels[index].empty() ? whole.substr(0, whole.find("/dtype:")) : labels[index].substr(1);
  }
  return labels;
}

}  // namespace

std::vector<std::string> verdicts(const std::vector<RowSummary>& rows,
                                  std::span<const std::string> names) {
  std::vector<std::string> workloads;
  std::vector<std::vector<Candidate>> groups;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (!rows[index].ranked()) continue;
    const auto found = std::find(workloads.begin(), workloads.end(), rows[index].workload);
    const auto group = static_cast<std::size_t>(found - workloads.begin());
    if (found == workloads.end()) {
      workloads.push_back(rows[index].workload);
      groups.emplace_back();
    }
    groups[group].push_back({&rows[index], &names[index]});
  }
  const std::vector<std::string> labels = labels_of(workloads);
  std::vector<std::string> lines;
  for (std::size_t index = 0; index < groups.size(); ++index) {
    for (const std::string& line : verdict_lines(groups[index], compared_pairs(rows))) {
      lines.push_back((groups.size() > 1 ? labels[index] + ": " : "") + line);
    }
  }
  return lines;
}

}  // namespace stratagem::reports
