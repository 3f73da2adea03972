#include "bench/proof/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "reports/statistics.h"

namespace stratagem::bench {
namespace {

/// Keeps the finding nearest to its bound, or furthest beyond, and the first one beyond.
class Findings {
 public:
  void add(double error, double bound, const std::string& what) {
    if (!(error <= bound) && what_is_wrong_.empty()) what_is_wrong_ = what;
    const bool says_nothing = error_ == 0 && bound_ == 0;
    const bool is_nearer = !std::isfinite(error) || error * bound_ > error_ * bound;
    if (!says_nothing && !is_nearer) return;
    error_ = std::isfinite(error) ? error : std::numeric_limits<double>::max();
    bound_ = bound;
  }

  double error() const { return error_; }
  double bound() const { return bound_; }
  const std::string& what_is_wrong() const { return what_is_wrong_; }

 private:
  double error_ = 0;
  double bound_ = 0;
  std::string what_is_wrong_;
};

double relative(double error, double expected) {
  return error / std::max(std::abs(expected), std::numeric_limits<double>::min());
}

/// The results count only timed steps.
constexpr const char* counting = " (counted from the first warm-up step, which is 0)";

/// Returns the largest relative error of a trajectory's losses up to a step; 0 for an empty one.
double error_so_far(const Trajectory& trajectory, const Trajectory& exact, std::size_t step) {
  double largest = 0;
  for (std::size_t each = 0; each <= step && each < trajectory.loss.size(); ++each) {
    const double expected = exact.loss.at(each);
    largest = std::max(largest, relative(std::abs(trajectory.loss[each] - expected), expected));
  }
  return largest;
}

void compare_losses(const Evidence& launch, const Reference& reference, Findings& findings) {
  for (std::size_t step = 0; step < launch.loss.size(); ++step) {
    const double expected = reference.exact.loss.at(step);
    const double found = launch.loss[step];
    const double rounding = error_so_far(reference.rounded, reference.exact, step);
    const double shaking = error_so_far(reference.shaken, reference.exact, step);
    const double bound =
        std::max({reference.loss_tolerance, rounded_factor * reference.coarser * rounding,
                  reference.shaken_factor * shaking});
    findings.add(relative(std::abs(found - expected), expected), bound,
                 fmt::format("the loss of step {} is {:.9g}, one device's is {:.9g}", step, found,
                             expected));
  }
}

constexpr std::string_view counts = "counts";
constexpr std::string_view model = "model";

/// Returns a name for all entries that are magnified alike. A statistic is an average of forward
/// passes and carries no error of a gradient.
std::string kind_of(const std::string& entry) {
  constexpr std::string_view optimizer = "optimizer.";
  if (entry.starts_with("optimizer.step") || entry.ends_with(".num_batches_tracked")) {
    return std::string(counts);
  }
  if (entry.ends_with(".running_mean") || entry.ends_with(".running_var")) return "statistics";
  if (!entry.starts_with(optimizer)) return std::string(model);
  return entry.substr(0, entry.find('.', optimizer.size()));
}

const Fingerprint& entry_of(const Fingerprints& state, const std::string& name) {
  static const Fingerprint none;
  const auto found = state.find(name);
  return found == state.end() ? none : found->second;
}

/// Computes by how much the steps changed each entry of the exact state, as a norm.
class Changes {
 public:
  Changes(const Trajectory& exact, std::int64_t steps)
      : first_(*exact.after(0)), exact_(*exact.after(steps)) {}

  double of(const std::string& name) const {
    return distance(exact_.at(name), entry_of(first_, name));
  }
  const Fingerprints& exact() const { return exact_; }

 private:
  const Fingerprints& first_;
  const Fingerprints& exact_;
};

/// Computes the distances of another computation of the same steps from the exact one.
class Errors {
 public:
  Errors(const Fingerprints* state, const Changes& changes) : state_(state), changes_(changes) {
    if (state == nullptr) return;
    std::map<std::string, std::vector<double>> all;  // by kind, over the entry's change
    for (const auto& [name, fingerprint] : changes.exact()) {
      const double change = changes.of(name);
      if (change > 0) all[kind_of(name)].push_back(own(name) / change);
    }
    for (const auto& [kind, ratios] : all) {
      usual_[kind] = reports::percentile(ratios, usual_share);
    }
  }

  /// Returns the larger of the entry's own error and the usual one of its kind; 0 without a state.
  double of(const std::string& name) const {
    if (state_ == nullptr) return 0;
    const auto usual = usual_.find(kind_of(name));
    return std::max(own(name), usual == usual_.end() ? 0 : usual->second * changes_.of(name));
  }

 private:
  double own(const std::string& name) const {
    return distance(entry_of(*state_, name), changes_.exact().at(name));
  }

  const Fingerprints* state_;
  const Changes& changes_;
  std::map<std::string, double> usual_;
};

void compare_states(const Evidence& launch, const Reference& reference, Findings& findings,
                    reports::Proof& proof) {
  const auto steps = static_cast<std::int64_t>(launch.loss.size());
  const Changes changes(reference.exact, steps);
  const Errors rounded(reference.rounded.after(steps), changes);
  const Errors shaken(reference.shaken.after(steps), changes);
  const double stored = stored_factor * reference.roundoff * std::sqrt(static_cast<double>(steps));
  for (const auto& [name, exact] : changes.exact()) {
    ++proof.entries;
    if (!launch.state.contains(name)) {
      findings.add(1, 0, fmt::format("{} is missing after step {}", name, steps - 1));
      continue;
    }
    const Fingerprint& found = launch.state.at(name);
    const double change = changes.of(name);
    const double flipped = kind_of(name) == model ? reference.sign_flip : 0;
    const double rounding = rounded_factor * reference.coarser * rounded.of(name) +
                            stored * exact.norm() + reference.undecided * change + flipped;
    const double bound =
        kind_of(name) == counts ? 0 : std::max(rounding, reference.shaken_factor * shaken.of(name));
    const double error = std::max(distance(found, exact), std::abs(found.norm() - exact.norm()));
    const double scale = change > 0 ? change : 1;
    if (bound < change) ++proof.shown;
    findings.add(error / scale, bound / scale,
                 fmt::format("{} after step {} differs from one device's by {:.2g} of its change, "
                             "and {:.2g} is allowed",
                             name, steps - 1, error / scale, bound / scale));
  }
}

}  // namespace

reports::Proof judge(const Evidence& launch, const Reference& reference) {
  reports::Proof proof;
  Findings losses;
  compare_losses(launch, reference, losses);
  Findings states;
  compare_states(launch, reference, states, proof);
  Findings all;
  all.add(losses.error(), losses.bound(), "");
  all.add(states.error(), states.bound(), "");
  proof.oracle = fmt::format("{}, {} steps", reference.oracle, launch.loss.size());
  proof.max_relative_error = all.error();
  proof.tolerance = all.bound();
  proof.message = losses.what_is_wrong();
  if (!states.what_is_wrong().empty()) {
    proof.message += (proof.message.empty() ? "" : "; ") + states.what_is_wrong();
  }
  proof.passed = proof.message.empty();
  if (!proof.passed) proof.message += counting;
  return proof;
}

std::string difference_of_launches(const Evidence& one, const Evidence& other) {
  const std::size_t steps = std::min(one.loss.size(), other.loss.size());
  for (std::size_t step = 0; step < steps; ++step) {
    if (one.loss[step] == other.loss[step]) continue;
    return fmt::format("two launches differ: the loss of step {} is {:.17g} and {:.17g}{}", step,
                       one.loss[step], other.loss[step], counting);
  }
  return "";
}

}  // namespace stratagem::bench
