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

/// Keeps what is nearest to its bound, or furthest beyond, and the first that is beyond.
class Findings {
 public:
  void add(double error, double bound, const std::string& what) {
    if (!(error <= bound) && what_is_wrong_.empty()) what_is_wrong_ = what;
    const bool worse = !std::isfinite(error) || error * bound_ > error_ * bound;
    if (!is_empty_ && !worse) return;
    is_empty_ = false;
    error_ = std::isfinite(error) ? error : std::numeric_limits<double>::max();
    bound_ = bound;
  }

  double error() const { return error_; }
  double bound() const { return bound_; }
  const std::string& what_is_wrong() const { return what_is_wrong_; }

 private:
  bool is_empty_ = true;
  double error_ = 0;
  double bound_ = 0;
  std::string what_is_wrong_;
};

double relative(double error, double expected) {
  return error / std::max(std::abs(expected), std::numeric_limits<double>::min());
}

void compare_losses(const Evidence& launch, const Reference& reference, Findings& findings) {
  double rounding = 0;
  for (std::size_t step = 0; step < launch.loss.size(); ++step) {
    const double expected = reference.exact.loss.at(step);
    const double found = launch.loss[step];
    rounding = std::max(rounding,
                        relative(std::abs(reference.rounded.loss.at(step) - expected), expected));
    const double bound =
        std::max(reference.loss_tolerance, proof_factor * reference.coarser * rounding);
    findings.add(relative(std::abs(found - expected), expected), bound,
                 fmt::format("the loss of step {} is {:.9g}, one device's is {:.9g}", step, found,
                             expected));
  }
}

/// What is magnified alike.
std::string kind_of(const std::string& entry) {
  constexpr std::string_view optimizer = "optimizer.";
  if (!entry.starts_with(optimizer)) return "model";
  return entry.substr(0, entry.find('.', optimizer.size()));
}

const Fingerprint& entry_of(const Fingerprints& state, const std::string& name) {
  static const Fingerprint none;
  const auto found = state.find(name);
  return found == state.end() ? none : found->second;
}

/// The states behind a number of steps, of which the reference has all entries.
struct States {
  const Fingerprints& first;
  const Fingerprints& exact;
  const Fingerprints& rounded;

  double change(const std::string& name) const {
    return distance(exact.at(name), entry_of(first, name));
  }
  double rounding(const std::string& name) const {
    return distance(entry_of(rounded, name), exact.at(name));
  }
};

/// By kind, what rounding usually is of an entry's change at most.
std::map<std::string, double> usual_roundings(const States& states) {
  std::map<std::string, std::vector<double>> all;
  for (const auto& [name, fingerprint] : states.exact) {
    const double change = states.change(name);
    if (change > 0) all[kind_of(name)].push_back(states.rounding(name) / change);
  }
  std::map<std::string, double> usual;
  for (const auto& [kind, ratios] : all) usual[kind] = reports::percentile(ratios, usual_share);
  return usual;
}

void compare_states(const Evidence& launch, const Reference& reference, Findings& findings) {
  const auto steps = static_cast<std::int64_t>(launch.loss.size());
  const States states{.first = *reference.exact.after(0),
                      .exact = *reference.exact.after(steps),
                      .rounded = *reference.rounded.after(steps)};
  auto usual = usual_roundings(states);
  const double stored = reference.roundoff * std::sqrt(static_cast<double>(steps));
  for (const auto& [name, exact] : states.exact) {
    if (!launch.state.contains(name)) {
      findings.add(1, 0, fmt::format("{} is missing behind step {}", name, steps - 1));
      continue;
    }
    const Fingerprint& found = launch.state.at(name);
    const double change = states.change(name);
    const double rounding = std::max(states.rounding(name), usual[kind_of(name)] * change);
    const double bound = proof_factor * (reference.coarser * rounding + stored * exact.norm()) +
                         reference.undecided * change;
    const double error = std::max(distance(found, exact), std::abs(found.norm() - exact.norm()));
    const double scale = change > 0 ? change : 1;
    findings.add(error / scale, bound / scale,
                 fmt::format("{} behind step {} is {:.2g} of its change from one device's, and "
                             "{:.2g} is allowed",
                             name, steps - 1, error / scale, bound / scale));
  }
}

}  // namespace

reports::Verdict judge(const Evidence& launch, const Reference& reference) {
  Findings losses;
  compare_losses(launch, reference, losses);
  Findings states;
  compare_states(launch, reference, states);
  const bool by_loss = !losses.what_is_wrong().empty();
  const bool passed = !by_loss && states.what_is_wrong().empty();
  Findings all;
  all.add(losses.error(), losses.bound(), "");
  all.add(states.error(), states.bound(), "");
  std::string message = losses.what_is_wrong();
  if (!states.what_is_wrong().empty()) message += (by_loss ? "; " : "") + states.what_is_wrong();
  return {.oracle = fmt::format("{}, {} steps", reference.oracle, launch.loss.size()),
          .scope = "full size",
          .max_relative_error = all.error(),
          .tolerance = all.bound(),
          .passed = passed,
          .message = message};
}

std::string difference_of_launches(const Evidence& one, const Evidence& other) {
  const std::size_t steps = std::min(one.loss.size(), other.loss.size());
  for (std::size_t step = 0; step < steps; ++step) {
    if (one.loss[step] == other.loss[step]) continue;
    return fmt::format("the loss of step {} is {:.17g} in one launch and {:.17g} in another", step,
                       one.loss[step], other.loss[step]);
  }
  return "";
}

}  // namespace stratagem::bench
