#include "tools/stratagem_torch/train_view.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "strategies/runtime/print_line.h"
#include "tools/stratagem_torch/train_text.h"

namespace stratagem::tools {
namespace {

using nlohmann::ordered_json;

/// Returns a number, or what the log writes instead of one that is not finite.
std::string number_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : fmt::format("{:.6g}", value.get<double>());
}

}  // namespace

void TrainView::print(const std::string& line) {
  if (quiet_) return;
  progress_.finish();
  runtime::print_line(stdout, line);
}

void TrainView::tick() {
  if (!log_) return progress_.tick();
  ask_for_checkpoint();
  read();
  if (!step_.is_null()) tell_of_step(step_);
}

bool TrainView::interrupted() {
  if (!log_ || stop_file_.empty()) return false;
  return std::ofstream(stop_file_).good();
}

void TrainView::ask_for_checkpoint() {
  if (saves_ == nullptr || !saves_->take()) return;
  if (save_file_.empty()) {
    progress_.finish();
    runtime::print_line(
        stderr, "stratagem: SIGUSR1 asks for a checkpoint, but --checkpoint-dir is not given");
    return;
  }
  asked_to_save_ = std::ofstream(save_file_).good();
}

void TrainView::read() { take(log_->next()); }

void TrainView::take(std::vector<ordered_json> lines) {
  for (ordered_json& line : lines) {
    tell(line);
    lines_.push_back(std::move(line));
  }
}

ordered_json TrainView::finish(std::vector<ordered_json> unwritten) {
  read();
  take(std::move(unwritten));
  close_epoch();
  progress_.finish();
  log_.reset();
  seconds_before_epoch_ = 0;
  samples_before_epoch_ = 0;
  return std::exchange(lines_, ordered_json::array());
}

void TrainView::tell(const ordered_json& line) {
  const std::string event = line.at("event");
  if (event == "step") {
    step_ = line;
    const bool is_first = line.at("step") == 1 && line.at("loss").is_number();
    if (is_first && classes_ > 0) {
      print(first_loss_text(line.at("loss"), classes_, line.at("batch")));
    }
  }
  if (event == "epoch") {
    close_epoch();
    tell_of_epoch(line);
  }
  if (event == "checkpoint") tell_of_checkpoint(line);
  if (event != "evaluation") return;
  close_epoch();
  const std::string when =
      evaluates_only_ ? "" : fmt::format(" after {} steps", line.at("step").get<std::int64_t>());
  std::string text = fmt::format("{}{}: loss {} of {} samples", line.at("split").get<std::string>(),
                                 when, number_text(line.at("loss")), line.at("samples").dump());
  if (line.contains("correct")) {
    const auto correct = line.at("correct").get<std::int64_t>();
    const auto positions = line.at("positions").get<std::int64_t>();
    text += fmt::format(", {} of {} right ({:.2f}%)", correct, positions,
                        100.0 * static_cast<double>(correct) / static_cast<double>(positions));
  }
  print(text);
}

void TrainView::tell_of_checkpoint(const ordered_json& line) {
  if (line.contains("error")) {
    print(fmt::format("{}checkpoint of step {}: {}", line.contains("path") ? "" : "no ",
                      line.at("step").dump(), line.at("error").get<std::string>()));
  } else if (std::exchange(asked_to_save_, false)) {
    print(fmt::format("saved {}", line.at("path").get<std::string>()));
  }
}

void TrainView::tell_of_epoch(const ordered_json& line) {
  replicas_ = line.at("replicas").get<std::int64_t>();
  for (std::int64_t rank = 0; rank < replicas_; ++rank) {
    print(fmt::format("[rank {} epoch {}: batch {}, {} steps]", rank, line.at("epoch").dump(),
                      line.at("batch").get<std::int64_t>() / replicas_, line.at("steps").dump()));
  }
}

/// Prints the line that stays of an epoch.
void TrainView::close_epoch() {
  if (step_.is_null()) return;
  const auto seconds = step_.at("seconds").get<double>();
  const auto samples = step_.at("samples").get<std::int64_t>();
  const auto batch = step_.at("batch").get<std::int64_t>();
  const std::string share =
      replicas_ > 1 ? fmt::format(" ({} a replica)", batch / replicas_) : std::string();
  print(fmt::format(
      "epoch {}: step {}, the last of {} samples{}, loss {}, {:.0f} samples/s",
      step_.at("epoch").dump(), step_.at("step").dump(), batch, share,
      number_text(step_.at("loss")),
      static_cast<double>(samples - samples_before_epoch_) / (seconds - seconds_before_epoch_)));
  seconds_before_epoch_ = seconds;
  samples_before_epoch_ = samples;
  step_ = nullptr;
}

void TrainView::tell_of_step(const ordered_json& line) {
  const auto done = line.at("step").get<std::size_t>();
  const auto all = line.at("of").get<std::size_t>();
  const auto seconds = line.at("seconds").get<double>();
  const double each = seconds / static_cast<double>(done);
  progress_.show({.index = done,
                  .items = all,
                  .text = fmt::format("epoch {} loss {}  {:.0f} samples/s", line.at("epoch").dump(),
                                      number_text(line.at("loss")),
                                      line.at("samples").get<double>() / seconds),
                  .step_ms = 1e3 * each,
                  .remaining_seconds = each * static_cast<double>(all - done)});
}

}  // namespace stratagem::tools
