#include "training/loop/checkpoint_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "strategies/backends/memory_accounting.h"
#include "strategies/distributed/state_pieces.h"
#include "tests/file_size_limit.h"
#include "tests/strategies/accounting.h"
#include "tests/strategies/training.h"
#include "tests/temporary_folder.h"

namespace stratagem::training::checkpoint_file_test {
namespace {

using models::OptimizerOptions;
using testing::HasSubstr;

models::WorkloadOptions work(const std::string& model, OptimizerOptions::Kind kind) {
  models::WorkloadOptions options = strategies::small_workload(model, 4);
  options.optimizer.kind = kind;
  if (kind != OptimizerOptions::Kind::sgd) options.optimizer.momentum = 0;
  return options;
}

void write(const std::filesystem::path& path, strategies::Training& training,
           const CheckpointNotes& notes) {
  distributed::StateReader state(training.strategy->own_state(false), nullptr, at::kCPU);
  write_checkpoint(path, notes, state, training.workload);
}

/// A training that took two steps, in a file.
CheckpointNotes some_checkpoint(strategies::Training& training, const std::filesystem::path& path) {
  strategies::Strategy& strategy = training.make("single");
  for (std::uint64_t step = 0; step < 2; ++step) strategy.step(training.workload.make_batch(step));
  CheckpointNotes notes{.position = {.step = 2,
                                     .samples = 8,
                                     .seconds = 0.25,
                                     .best = {.monitor = "accuracy",
                                              .value = 0.75,
                                              .step = 1,
                                              .last_step = 2,
                                              .without_improvement = 1}},
                        .work = "{\"seed\":3}"};
  write(path, training, notes);
  return notes;
}

std::string refusal(const std::filesystem::path& path, const models::WorkloadOptions& options) {
  try {
    read_checkpoint(path, models::Workload(options));
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
    return error.what();
  }
  return "accepted";
}

TEST(CheckpointFile, ReadingItTakesNoMemoryForItsTensors) {
  const TemporaryFolder folder;
  strategies::Training training(work("gpt-tiny", OptimizerOptions::Kind::adamw), 1);
  const auto path = folder / "step.pt";
  some_checkpoint(training, path);
  constexpr backends::MemoryAccount account = backends::memory_accounts - 1;
  const backends::MemoryAccountGuard charged(account);
  backends::reset_peak_of(account);
  const std::int64_t before = backends::memory_of(account).current_bytes;
  const Checkpoint read = read_checkpoint(path, training.workload);
  EXPECT_LT(backends::memory_of(account).peak_bytes - before,
            static_cast<std::int64_t>(std::filesystem::file_size(path)) / 50);
  EXPECT_TRUE(
      at::equal(read.state.at("head.weight"), training.strategy->state().at("head.weight")));
  std::filesystem::remove(path);  // the tensors keep its pages
  EXPECT_TRUE(
      at::equal(read.state.at("head.weight"), training.strategy->state().at("head.weight")));
}

class EveryOptimizer : public testing::TestWithParam<OptimizerOptions::Kind> {};

TEST_P(EveryOptimizer, GoesOnFromTheFileAsIfItHadNeverStopped) {
  const TemporaryFolder folder;
  for (const char* model : {"toy", "resnet18"}) {
    const auto options = work(model, GetParam());
    strategies::Training training(options, 1);
    const auto path = folder / "step.pt";
    const CheckpointNotes written = some_checkpoint(training, path);
    const Checkpoint read = read_checkpoint(path, training.workload);
    EXPECT_EQ(read.position.step, 2);
    EXPECT_EQ(read.position.samples, 8);
    EXPECT_EQ(read.position.seconds, 0.25);
    EXPECT_EQ(read.position.best, written.position.best);
    EXPECT_EQ(read.work, written.work);

    strategies::Training resumed(options, 1);
    strategies::Strategy& strategy = resumed.make("single");
    strategy.load(read.state);
    const models::Batch batch = training.workload.make_batch(2);
    strategy.step(batch);
    training.strategy->step(batch);
    EXPECT_EQ(strategies::largest_difference(strategy.state(), training.strategy->state()), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, EveryOptimizer,
                         testing::Values(OptimizerOptions::Kind::sgd, OptimizerOptions::Kind::adam,
                                         OptimizerOptions::Kind::adamw));

TEST(CheckpointFile, HasTheLossScalerAndHowManyUpdatesWereSkipped) {
  auto options = work("toy", OptimizerOptions::Kind::adam);
  options.dtype = at::kHalf;
  options.mixed = true;
  options.loss_scale = 0x1p30;
  options.dynamic_loss_scale = true;
  options.loss_scale_hysteresis = 2;
  strategies::Training training(options, 1);
  const TemporaryFolder folder;
  const auto path = folder / "step.pt";
  CheckpointNotes written = some_checkpoint(training, path);
  written.position.skipped = 2;
  write(path, training, written);
  const Checkpoint read = read_checkpoint(path, training.workload);
  EXPECT_EQ(read.position.skipped, 2);
  const auto scale = [](const Checkpoint& of, const char* name) {
    return of.state.at(std::string("loss_scaler.") + name).item<double>();
  };
  EXPECT_EQ(scale(read, "scale"), 0x1p29);  // of two overflows the first was free
  EXPECT_EQ(scale(read, "good_steps"), 0);
  EXPECT_EQ(scale(read, "overflows_left"), 0);

  strategies::Training resumed(options, 1);
  resumed.make("single").load(read.state);
  EXPECT_EQ(strategies::largest_difference(resumed.strategy->state(), read.state), 0);
  auto none = read.state;
  std::erase_if(none, [](const auto& entry) { return entry.first.starts_with("loss_scaler."); });
  resumed.strategy->load(none);
  EXPECT_EQ(resumed.strategy->state().at("loss_scaler.scale").item<double>(), 0x1p30);
}

TEST(CheckpointFile, OfAnotherModelOrOptimizerIsRefused) {
  strategies::Training training(work("toy", OptimizerOptions::Kind::sgd), 1);
  const TemporaryFolder folder;
  const auto path = folder / "step.pt";
  some_checkpoint(training, path);
  EXPECT_THAT(refusal(path, work("mlp", OptimizerOptions::Kind::sgd)),
              HasSubstr("is of another model: it has no tensor \""));
  EXPECT_THAT(refusal(path, work("toy", OptimizerOptions::Kind::adam)),
              HasSubstr("is of another optimizer: it has no \"exp_avg\""));
}

TEST(CheckpointFile, WhatNoTrainingStatesIsRefused) {
  const auto options = work("toy", OptimizerOptions::Kind::adam);
  strategies::Training training(options, 1);
  const TemporaryFolder folder;
  const auto path = folder / "step.pt";
  const CheckpointNotes notes = some_checkpoint(training, path);
  const Checkpoint good{
      .state = training.strategy->state(), .position = notes.position, .work = notes.work};
  const auto refused = [&](auto change, const char* words) {
    Checkpoint written = good;
    change(written);
    strategies::StatePieces pieces;
    for (const auto& [name, tensor] : written.state) {
      pieces.push_back(distributed::piece_of(name, tensor));
    }
    distributed::StateReader state(std::move(pieces), nullptr, at::kCPU);
    write_checkpoint(path, {.position = written.position, .work = written.work}, state,
                     training.workload);
    EXPECT_THAT(refusal(path, options), HasSubstr(words));
  };
  refused([](Checkpoint& each) { each.position.step = -5; }, "\"step\" is -5, expected 0 or more");
  refused([](Checkpoint& each) { each.position.samples = -1; }, "\"samples\" is -1");
  refused([](Checkpoint& each) { each.position.seconds = std::nan(""); }, "\"seconds\" is nan");
  refused([](Checkpoint& each) { each.position.skipped = 3; }, "3 of 2 steps were skipped");
  const auto without_optimizer = [](Checkpoint& each) {
    std::erase_if(each.state, [](const auto& entry) {
      return entry.first.starts_with("optimizer.exp_avg_sq.");
    });
  };
  refused(without_optimizer, "is of another optimizer: it has no \"exp_avg_sq\" of ");
  const auto empty = [](Checkpoint& each) {
    std::erase_if(each.state,
                  [](const auto& entry) { return entry.first.starts_with("optimizer."); });
  };
  refused(empty, "is of another optimizer: it has no \"exp_avg\" of ");
  refused(
      [&](Checkpoint& each) {
        empty(each);
        each.position = {};
      },
      "accepted");
  refused(
      [](Checkpoint& each) {
        for (auto& [name, tensor] : each.state) {
          if (name.starts_with("optimizer.exp_avg.")) tensor = at::zeros({3});
        }
      },
      "is [3], expected [");
}

TEST(CheckpointFile, ItsNameStatesItsStep) {
  const auto options = work("toy", OptimizerOptions::Kind::sgd);
  strategies::Training training(options, 1);
  const TemporaryFolder folder;
  const auto path = folder / "step-00000007.pt";
  some_checkpoint(training, path);
  EXPECT_THAT(refusal(path, options), HasSubstr("is of step 2, but its name has another step"));
}

TEST(CheckpointFile, WhatIsDamagedIsRefusedInOneLine) {
  const auto options = work("toy", OptimizerOptions::Kind::sgd);
  strategies::Training training(options, 1);
  const TemporaryFolder folder;
  const auto path = folder / "step.pt";
  some_checkpoint(training, path);
  const auto size = std::filesystem::file_size(path);
  for (const auto part : {size - 1, size / 2, std::uintmax_t{10}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path, part);
    EXPECT_THAT(refusal(path, options),
                HasSubstr(part == 0 ? "is empty" : "is not a complete file"))
        << part << " bytes";
  }
  std::filesystem::remove(path);
  EXPECT_THAT(refusal(path, options), HasSubstr("No such file"));
}

TEST(CheckpointFile, AFullDiskIsAnErrorAndLeavesNothing) {
  const TemporaryFolder folder;
  strategies::Training training(work("toy", OptimizerOptions::Kind::adamw), 1);
  const auto path = folder / "step.pt";
  const CheckpointNotes notes = some_checkpoint(training, path);
  const auto size = std::filesystem::file_size(path);
  std::filesystem::remove(path);
  // In the first record, in a tensor, and in the directory that ends the archive.
  for (const auto bytes : {size / 100, size / 2, size - 1}) {
    SCOPED_TRACE(bytes);
    const FileSizeLimit full(bytes);
    EXPECT_THROW(write(path, training, notes), std::system_error);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

}  // namespace
}  // namespace stratagem::training::checkpoint_file_test
