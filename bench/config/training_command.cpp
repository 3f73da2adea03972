#include "bench/config/training_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <vector>

#include "bench/config/options.h"
#include "models/registry/named_entries.h"
#include "training/best_evaluation.h"

namespace stratagem::bench {
namespace {

using training::TrainingOptions;

/// Adds a fraction of the training set, `own` for the set's own part, or `none`.
CLI::Option* add_part(CLI::App& app, const char* flag, double& part, const char* meaning) {
  return app
      .add_option_function<std::string>(
          flag,
          [&part, flag](const std::string& text) {
            part = text == "own" ? -1 : 0;
            if (text == "own" || text == "none") return;
            const char* const end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, part);
            if (error == std::errc() && stop == end && part > 0 && part < 1) return;
            throw std::invalid_argument(fmt::format(
                "{} \"{}\": expected a fraction between 0 and 1, own or none", flag, text));
          },
          meaning)
      ->type_name("FRACTION");
}

class Adder {
 public:
  Adder(CLI::App& app, std::string group) : app_(app), group_(std::move(group)) {}

  /// Adds a value between two bounds, with its default in the help.
  template <class Value>
  void number(const char* flag, Value& target, Value low, Value high, const std::string& meaning) {
    app_.add_option_function<std::string>(
            flag,
            [=, &target](const std::string& text) {
              Value value{};
              const char* const end = text.data() + text.size();
              const auto [stop, error] = std::from_chars(text.data(), end, value);
              if (error != std::errc() || stop != end || !(value >= low) || !(value <= high)) {
                throw std::invalid_argument(
                    fmt::format("{} \"{}\": expected a {} of {} {}", flag, text,
                                std::numeric_limits<Value>::is_integer ? "whole number" : "number",
                                low, upper(high)));
              }
              target = value;
            },
            fmt::format("{} [{}]", meaning, target))
        ->group(group_)
        ->type_name(std::numeric_limits<Value>::is_integer ? "N" : "X");
  }

  void choice(const char* flag, std::string& target, const std::vector<std::string>& choices,
              const std::string& meaning) {
    app_.add_option_function<std::string>(
            flag,
            [=, &target](const std::string& text) {
              if (std::ranges::find(choices, text) == choices.end()) {
                throw std::invalid_argument(
                    fmt::format("{}: {}", flag, models::unknown_name("value", text, choices)));
              }
              target = text;
            },
            fmt::format("{} [{}]", with_choices(meaning, choices), target))
        ->group(group_)
        ->type_name("NAME");
  }

  void text(const char* flag, std::string& target, const std::string& meaning, const char* type) {
    app_.add_option(flag, target, meaning)->group(group_)->type_name(type);
  }

  void turn(const char* flag, bool& target, bool to, const std::string& meaning) {
    app_.add_flag_callback(
            flag, [&target, to] { target = to; }, meaning)
        ->group(group_);
  }

  void part(const char* flag, double& target, const char* meaning) {
    add_part(app_, flag, target, meaning)->group(group_);
  }

 private:
  template <class Value>
  static std::string upper(Value high) {
    return high == std::numeric_limits<Value>::max() ? "or more" : fmt::format("to {}", high);
  }

  CLI::App& app_;
  std::string group_;
};

constexpr auto any_count = std::numeric_limits<std::int64_t>::max();

void add_data_options(CLI::App& app, TrainOptions& options) {
  TrainingOptions& own = options.training;
  Adder add(app, "Data");
  add.text("--data", own.data,
           fmt::format("data set: {}; auto: chosen by the model's inputs [{}]",
                       datasets::dataset_usages(), own.data),
           "NAME");
  add.choice("--token-dtype", own.token_dtype, {"auto", "uint16", "uint32"},
             "integer type of a token file: uint16, uint32, auto (llm.c's header, else uint16)");
  add.number<std::int64_t>("--samples", own.samples, 1, any_count,
                           "number of training samples of a generated data set");
  add.part("--validation", own.validation,
           "validation set: a fraction of the training set, own (the validation set of --data, or "
           "else its test set), or none [none]");
  add.part("--test", own.test,
           "test set, which is evaluated once at the end: a fraction of the training set, own (the "
           "test set of --data), or none [none]");
  add.choice("--tail", own.tail, training::tail_names(),
             "treatment of the last incomplete batch: pad (fill it with the first samples, like "
             "DistributedSampler), drop (skip it), exact (train on it as it is)");
  add.turn("--no-shuffle", own.shuffle, false, "do not shuffle the samples");
  add.turn("--augment", own.augment, true, "shift and mirror images at random");
  add.number<std::int64_t>(
      "--loader-threads", own.loader_threads, 1, 256,
      "number of threads of each process that load batches; without effect for batches of at most "
      "8192 numbers, which are loaded between the steps");
  add.number<std::int64_t>("--prefetch", own.prefetch, 1, 1024,
                           "number of batches that are loaded ahead");
}

void add_length_options(CLI::App& app, TrainOptions& options) {
  TrainingOptions& own = options.training;
  Adder add(app, "Training");
  add.number<std::int64_t>("--epochs", own.epochs, 1, any_count, "number of epochs");
  add.number<std::int64_t>("--max-steps", own.max_steps, 0, any_count,
                           "maximum number of steps; 0: no maximum");
  add.choice("--learning-rate-schedule", own.learning_rate_schedule, training::decay_names(),
             "course of the learning rate after the warm-up: constant, step, linear, cosine, wsd "
             "(stable, then decay); docs/guide/training.md has the formulas");
  add.number<std::int64_t>("--warmup-steps", own.warmup_steps, 0, any_count,
                           "number of first steps, in which the rate rises to --learning-rate");
  add.number<double>("--final-learning-rate", own.final_learning_rate, 0,
                     std::numeric_limits<double>::max(),
                     "learning rate at the end of the schedule");
  add.number<std::int64_t>("--schedule-steps", own.schedule_steps, 0, any_count,
                           "number of steps until the decay ends, or until the first drop with "
                           "--learning-rate-schedule step; 0: the whole training");
}

void add_evaluation_options(CLI::App& app, TrainOptions& options) {
  TrainingOptions& own = options.training;
  Adder add(app, "Evaluation");
  add.number<std::int64_t>(
      "--evaluate-every", own.evaluate_every, 0, any_count,
      "number of steps between evaluations of the validation set; 0: after each "
      "epoch");
  add.turn("--no-evaluate-first", own.evaluate_first, false,
           "skip the evaluation before the first step");
  add.turn(
      "--evaluate-only", own.evaluate_only, true,
      "evaluate the model of --resume or --initial-state on the --validation and --test sets, and "
      "do not train");
  add.choice("--monitor", own.monitor, training::monitor_names(),
             "metric that decides which evaluation is the best");
  add.number<std::int64_t>(
      "--early-stop", own.early_stop, 0, any_count,
      "stop after this number of evaluations without an improvement; 0: never");
}

void add_output_options(CLI::App& app, TrainOptions& options) {
  Adder add(app, file_group);
  std::vector<std::string> names;
  for (const TrainingPreset& preset : training_presets()) names.push_back(preset.row.name);
  add.text("--preset", options.row.preset,
           fmt::format("take the options that you do not give from a preset: {}",
                       fmt::join(names, ", ")),
           "NAME");
  add.number<std::int64_t>("--log-every", options.training.log_every, 1, any_count,
                           "number of steps between lines of the log");
  add.text("--log", options.training.log, "write progress to FILE as JSON lines", "FILE");
  add.text("--out", options.row.files.out,
           "write the training's results to FILE as JSON at its end", "FILE");
  add.text("--checkpoint-dir", options.training.checkpoint_dir,
           "write checkpoints, which torch.load reads, to FOLDER", "FOLDER");
  add.number<std::int64_t>("--checkpoint-every", options.training.checkpoint_every, 0, any_count,
                           "number of steps between checkpoints; 0: after each epoch");
  add.turn("--checkpoint-first", options.training.checkpoint_first, true,
           "write a checkpoint of the initial state too");
  add.number<std::int64_t>("--keep", options.training.keep, 0, any_count,
                           "number of recent checkpoints to keep; 0: all");
  add.turn("--keep-best", options.training.keep_best, true,
           "keep the checkpoint of the best evaluation as best.pt");
  add.number<double>(
      "--checkpoint-timeout", options.training.checkpoint_timeout, 0.001, 1e9,
      "time limit of writing a checkpoint, in seconds; --timeout does not apply to it");
  add.text("--resume", options.resume,
           "continue from a checkpoint: the path of a step-NUMBER.pt, auto (the last one in "
           "--checkpoint-dir, if any), or none [none]",
           "PATH");
  add.text("--initial-state", options.training.initial_state,
           "load initial parameters from a checkpoint or a state_dict() saved by torch.save",
           "FILE");
  add.turn("--show-shapes", options.show_shapes, true,
           "print each device's shapes for every batch of the first epoch");
  add.turn("--quiet", options.row.files.quiet, true, "print only errors");
  app.add_option_function<std::string>(
         "--require",
         [&options](const std::string& text) { options.requirement = Requirement::parse(text); },
         "exit with 1 unless the training reaches this loss or accuracy (on the validation set if "
         "there is one)")
      ->group(file_group)
      ->type_name("loss:VALUE|accuracy:FRACTION");
}

}  // namespace

Requirement Requirement::parse(const std::string& text) {
  Requirement wanted;
  if (text.starts_with("loss:")) wanted.kind = Kind::loss;
  if (text.starts_with("accuracy:")) wanted.kind = Kind::accuracy;
  const std::string number = text.substr(text.find(':') + 1);
  const char* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, wanted.value);
  const bool can_fail = wanted.kind == Kind::accuracy ? wanted.value > 0 && wanted.value <= 1
                                                      : std::isfinite(wanted.value);
  if (wanted.kind != Kind::none && error == std::errc() && stop == end && can_fail) return wanted;
  throw std::invalid_argument(fmt::format(
      "--require \"{}\": expected loss:VALUE or accuracy:FRACTION, which is above 0 and at most 1",
      text));
}

void add_train_options(CLI::App& app, TrainOptions& options, const Catalogue& catalogue) {
  add_row_options(app, options.row, catalogue, [](const Option& option) {
    return (option.group == "Measurement" && option.name != "verify") || option.name == "data";
  });
  add_data_options(app, options);
  add_length_options(app, options);
  add_evaluation_options(app, options);
  add_output_options(app, options);
}

void refuse_unused(const CLI::App& app, const TrainOptions& options,
                   const datasets::DatasetEntry& data, const datasets::SampleFormat& format) {
  const TrainingOptions& own = options.training;
  const auto need = [&app](bool met, const char* needed, std::initializer_list<const char*> flags) {
    for (const char* flag : flags) {
      if (met || app.count(flag) == 0) continue;
      throw std::invalid_argument(fmt::format("{}: {}", flag, needed));
    }
  };
  const bool falls = own.learning_rate_schedule != "constant";
  need(!own.checkpoint_dir.empty(), "needs --checkpoint-dir",
       {"--checkpoint-every", "--checkpoint-first", "--checkpoint-timeout", "--keep",
        "--keep-best"});
  need(own.validation != 0, "needs --validation",
       {"--evaluate-every", "--no-evaluate-first", "--keep-best", "--early-stop", "--monitor"});
  need(own.keep_best || own.early_stop > 0, "needs --keep-best or --early-stop", {"--monitor"});
  need(own.monitor != "accuracy" || format.classes > 0, "accuracy needs targets that are classes",
       {"--monitor"});
  need(!own.evaluate_only, "has no effect with --evaluate-only",
       {"--epochs", "--max-steps", "--evaluate-every", "--no-evaluate-first", "--early-stop",
        "--checkpoint-every", "--checkpoint-first", "--checkpoint-timeout", "--keep", "--keep-best",
        "--augment", "--show-shapes"});
  need(own.validation != 0 || own.test != 0, "needs --validation or --test", {"--evaluate-only"});
  need(!own.evaluate_only || own.validation != 0, "needs --validation", {"--require"});
  need(falls, "needs a --learning-rate-schedule", {"--schedule-steps", "--final-learning-rate"});
  need(own.learning_rate_schedule != "step", "has no effect with --learning-rate-schedule step",
       {"--final-learning-rate"});
  need(format.kind == datasets::SampleKind::image, "needs images", {"--augment"});
  need(data.drawn, "needs generated data: random or shapes", {"--samples"});
  need(data.name == "tokens", "needs --data tokens", {"--token-dtype"});
  if (options.requirement.kind == Requirement::Kind::accuracy) {
    need(own.validation != 0, "accuracy needs a --validation set", {"--require"});
  }
}

const TrainingPreset* preset_among(std::span<const std::string> arguments) {
  std::string wanted;
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::string& argument = arguments[index];
    if (argument.starts_with("--preset=")) wanted = argument.substr(argument.find('=') + 1);
    if (argument == "--preset" && index + 1 < arguments.size()) wanted = arguments[index + 1];
  }
  if (wanted.empty()) return nullptr;
  std::vector<std::string> names;
  for (const TrainingPreset& preset : training_presets()) {
    if (preset.row.name == wanted) return &preset;
    names.push_back(preset.row.name);
  }
  throw std::invalid_argument("--preset: " + models::unknown_name("preset", wanted, names));
}

}  // namespace stratagem::bench
