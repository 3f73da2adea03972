#include "tools/stratagem_torch/train_text.h"

#include <fmt/format.h>

#include <cmath>

#include "reports/text_table.h"
#include "training/first_loss.h"

namespace stratagem::tools {

std::string sizes_text(const datasets::Datasets& data) {
  std::string text = fmt::format("{} training", data.training->size());
  if (data.validation) text += fmt::format(", {} validation", data.validation->size());
  if (data.test) text += fmt::format(", {} test", data.test->size());
  return text + " samples";
}

/// Returns why the training has not met its requirement, in one line; empty if it has.
std::string shortfall(const bench::Requirement& wanted, const bench::TrainResult& found) {
  using Kind = bench::Requirement::Kind;
  if (wanted.kind == Kind::loss) {
    const std::optional<double> loss = found.validation_loss ? found.validation_loss : found.loss;
    if (loss && *loss <= wanted.value) return "";
    const char* const none = found.steps == found.steps_before
                                 ? "no loss, because no step was left; a --validation set has one"
                                 : "no number";
    return fmt::format("--require loss:{:g}: the training reached {}", wanted.value,
                       loss ? fmt::format("{:g}", *loss) : none);
  }
  if (wanted.kind == Kind::accuracy) {
    if (!found.accuracy) {
      return "--require accuracy: needs classes and a --validation set";
    }
    if (*found.accuracy >= wanted.value) return "";
    return fmt::format("--require accuracy:{:g}: the training reached {:g}", wanted.value,
                       *found.accuracy);
  }
  return "";
}

std::string steps_text(const bench::TrainResult& found) {
  const double seconds = found.seconds - found.seconds_before;
  const std::int64_t steps = found.steps - found.steps_before;
  if (steps == 0) return "no step was left";
  std::string text =
      fmt::format("{} steps in {} s, {} ms a step", steps, reports::significant(seconds),
                  reports::significant(1e3 * seconds / static_cast<double>(steps)));
  if (found.skipped_updates > 0) {
    text += fmt::format("; {} of all {} updates skipped: gradients were not finite",
                        found.skipped_updates, found.steps);
  }
  return text;
}

std::string early_stop_text(const training::TrainingOptions& options,
                            const bench::TrainResult& found) {
  std::string text =
      fmt::format("stopped early: no better {} of the validation set in {} evaluations",
                  options.monitor, options.early_stop);
  if (found.best)
    text += fmt::format("; the best is {:.6g} after {} steps", *found.best, found.best_step);
  return text;
}

std::string stalls_text(const bench::TrainResult& found) {
  constexpr double worth_a_word = 0.01;  // share of the time
  const double milliseconds = 1e3 * (found.seconds - found.seconds_before);
  const auto steps = static_cast<double>(found.steps - found.steps_before);
  if (steps == 0 || milliseconds <= 0) return "stalls: none";
  const double waited = found.data_wait_ms / milliseconds;
  const double step_ms = (milliseconds - found.data_wait_ms) / steps;
  std::string text = fmt::format(
      "stalls: {} of {} steps, {:.1f}% of the time; the loader needs {} ms a batch of a {} ms step",
      found.stalled_steps, steps, 100 * waited, reports::significant(found.loader_ms),
      reports::significant(step_ms));
  const double enough = std::ceil(found.loader_ms / step_ms);
  const auto threads = static_cast<double>(found.loader_threads);  // 0: more would not help
  if (waited > worth_a_word && threads > 0 && enough > threads) {
    text += fmt::format("; {} threads would be enough", enough);
  }
  return text;
}

std::string first_loss_text(double loss, std::int64_t classes, std::int64_t samples) {
  const training::LossRange usual = training::usual_first_loss(classes, samples);
  std::string text = fmt::format("first loss {:.3g}, ln({}) = {:.3g}", loss, classes,
                                 std::log(static_cast<double>(classes)));
  if (loss < usual.low || loss > usual.high) {
    text += fmt::format(
        ": outside {:.3g} to {:.3g}, the usual range for {} samples; check the "
        "initial parameters and the scale of the inputs",
        usual.low, usual.high, samples);
  }
  return text;
}

}  // namespace stratagem::tools
