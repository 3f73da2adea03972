// Whatever option a row accepts changes what the row does: its schedule, its counts or its numbers.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "bench/config/catalogue.h"
#include "bench/config/options.h"
#include "bench/config/placement.h"
#include "bench/config/row_name.h"
#include "bench/worker/absent_ranks.h"
#include "bench/worker/session.h"
#include "strategies/registry.h"
#include "tests/strategies/training.h"

namespace stratagem::bench::option_effect_test {
namespace {

using Values = std::map<std::string, std::string>;

/// The first rank's strategy of a row, and groups in which no other rank is there.
class FirstRank {
 public:
  explicit FirstRank(const Config& row)
      : placement_(placement_of(row)),
        workload_(options_of(row)),
        devices_(strategies::unpinned_devices(placement_.devices_per_rank())) {
    strategy_ = strategies::find_strategy(row.strategy)
                    .make({.workload = workload_,
                           .devices = devices_.devices,
                           .options = row,
                           .groups = groups_of(row),
                           .before_action = [this](const auto& action) { note(action); }});
  }

  /// Describes what the row does in a step.
  std::string description() {
    const models::Batch batch = workload_.make_batch(0);
    std::string text;
    for (const schedules::Slice& slice : strategy_->batch_partition(batch.size())) {
      text += fmt::format("samples {} to {} of replica {}\n", slice.start,
                          slice.start + slice.count, slice.replica);
    }
    const strategies::Costs costs = strategy_->costs(batch.size());
    text += fmt::format("{} stages, {} live, bubble {:.6f}\n", costs.stages,
                        costs.live_micro_batches, costs.ideal_bubble);
    for (const auto& [name, group] : costs.calls) {
      text += fmt::format("{}: {}\n", name, fmt::join(group.calls, ", "));
    }
    for (const strategies::StateBytes& bytes : costs.memory) {
      text += fmt::format("{}+{}+{} bytes\n", bytes.parameters, bytes.gradients, bytes.optimizer);
    }
    text += in_words(costs.collectives);
    text += fmt::format("{} operations repeated\n", costs.recomputed_flops);
    if (placement_.pipeline_ranks() > 1) return text;  // nobody would answer
    strategy_->step(batch);
    runtime::synchronize_all(devices_.devices, std::chrono::seconds(20));
    text += in_words(strategy_->take_counts());
    for (const auto& group : made_) text += in_words(group->counts());
    for (const auto& [thread, actions] : actions_) lists_.insert(actions);
    text += fmt::format("{}\n", fmt::join(lists_, "\n"));
    for (const strategies::StatePiece& piece : strategy_->own_state(/*with_gradients=*/false)) {
      const auto sum = piece.values.to(at::kDouble).sum().item<double>();
      text += fmt::format("{} from {}: {:.17g}\n", piece.name, piece.start, sum);
    }
    return text;
  }

 private:
  static models::WorkloadOptions options_of(const Config& row) {
    models::WorkloadOptions options = workload_options(row);
    options.width = 0.125;
    return options;
  }

  static std::string in_words(const strategies::CommunicationCounts& counts) {
    std::string text;
    for (const auto& [name, cost] : counts) {
      text += fmt::format("{}: {} calls, {} bytes, {} sent\n", name, cost.calls, cost.payload_bytes,
                          cost.wire_bytes);
    }
    return text;
  }

  strategies::RankGroups groups_of(const Config& row) {
    strategies::RankGroups view{.replicas = placement_.replicas()};
    if (strategies::find_strategy(row.strategy).one_process || placement_.ranks == 1) return view;
    const auto copies = static_cast<int>(row.replicas_of_shards);
    for (const auto& device : devices_.devices) {
      const auto make = [&](const char* name, int size) {
        made_.push_back(without_the_others(name, size, "gloo", *device));
        return made_.back().get();
      };
      if (placement_.pipeline_ranks() > 1) {
        view.activations = make("activations", placement_.pipeline_ranks());
        view.gradients = make("gradients", placement_.pipeline_ranks());
        view.activations_around = make("activations around", placement_.pipeline_ranks());
        view.gradients_around = make("gradients around", placement_.pipeline_ranks());
      }
      if (placement_.tensor_ranks() > 1) view.tensor = make("tensor", placement_.tensor_ranks());
      if (placement_.context_ranks() > 1) {
        view.context = make("context", placement_.context_ranks());
      }
      if (placement_.ranks > 1 && row.mixed_precision == "float16") {
        view.norm = make("norm", placement_.ranks);
      }
      const int replicas = placement_.replicas() * placement_.context_ranks();
      if (replicas == 1) continue;
      view.data.push_back(make("data", replicas));
      if (copies == 1) continue;
      view.shards.push_back(make("shards", replicas / copies));
      view.copies.push_back(make("copies", copies));
    }
    return view;
  }

  void note(const schedules::Action& action) {
    const std::lock_guard lock(mutex_);
    actions_[std::this_thread::get_id()] += to_string(action) + " ";
  }

  Placement placement_;
  models::Workload workload_;
  backends::DeviceGroup devices_;
  std::vector<std::unique_ptr<distributed::ProcessGroup>> made_;
  std::mutex mutex_;
  std::map<std::thread::id, std::string> actions_;
  std::multiset<std::string> lists_;
  std::unique_ptr<strategies::Strategy> strategy_;
};

const Catalogue& catalogue() {
  static const Catalogue all = registered_catalogue();
  return all;
}

void set(Config& config, const std::string& name, const std::string& text) {
  set_value(config, find_option(name), text, name, &catalogue());
}

/// With buckets and groups that a model of some kilobytes fills.
std::optional<Config> row_of(const std::string& strategy, const Values& values) {
  Config row;
  const Values usual = {{"strategy", strategy},     {"model", "gpt-small"},
                        {"loss", "cross_entropy"},  {"sequence_length", "8"},
                        {"global_batch_size", "8"}, {"split_size", "1"},
                        {"bucket_mb", "0.001"},     {"optimizer", "adamw"},
                        {"learning_rate", "0.1"},   {"oversubscribe", "on"}};
  for (const auto& [name, text] : usual) set(row, name, text);
  for (const auto& [name, text] : values) set(row, name, text);
  for (const auto& [name, text] : values) {
    if (!is_used(find_option(name), row, catalogue())) return std::nullopt;
  }
  if (row.mesh != "auto") row.devices = ranks::parse_mesh(row.mesh).size();
  return row;
}

/// The row with its cut, as a run's check makes it; empty where that refuses it.
std::optional<Config> accepted(const Config& row) {
  const CheckedRow checked = check({.configs = {row}}, {}).rows.at(0);
  if (!checked.error.empty()) return std::nullopt;
  return checked.config;
}

/// Rows of a strategy in which each of its options has something to change.
std::vector<Config> rows_of(const strategies::StrategyEntry& strategy) {
  const std::vector<Values> all = {
      {},
      {{"devices", "4"}, {"accumulation_steps", "2"}},
      {{"devices", "4"}, {"accumulation_steps", "2"}, {"mixed_precision", "bfloat16"}},
      {{"devices", "4"}, {"mixed_precision", "float16"}},
      {{"devices", "4"}, {"shard", "parameters"}},
      {{"schedule", "interleaved_1f1b"}},
      {{"schedule", "zb_auto"}},
      {{"mesh", "data=2/pipeline=2"}},
      {{"mesh", "data=2/pipeline=2"}, {"schedule", "interleaved_1f1b"}},
      {{"mesh", "data=2/pipeline=2"}, {"schedule", "zb_auto"}},
      {{"mesh", "data=4/tensor=2"}, {"mixed_precision", "bfloat16"}},
      {{"mesh", "data=4/tensor=2"}, {"shard", "optimizer"}},
      {{"mesh", "data=4/pipeline=2"}, {"shard", "parameters"}},
      {{"mesh", "data=2/pipeline=2"}, {"accumulation_steps", "2"}},
      {{"mesh", "pipeline=2/tensor=2"}, {"schedule", "interleaved_1f1b"}},
      {{"mesh", "pipeline=2/tensor=2"}, {"schedule", "zb_auto"}},
      {{"mesh", "data=2/context=2"}},
      {{"mesh", "context=2"}, {"context_exchange", "ring"}},
      {{"mesh", "context=2"}, {"context_exchange", "gather"}},
      {{"devices", "4"}, {"recompute", "full"}},
      {{"replicate", "kept"}, {"reduce", "overlapped"}},
      {{"loss_on", "replicas"}, {"replicate", "kept"}}};
  std::vector<Config> rows;
  for (const Values& values : all) {
    const auto row = row_of(strategy.name, values);
    if (!row) continue;
    if (accepted(*row)) rows.push_back(*row);
  }
  return rows;
}

/// Other values that a row may have.
std::vector<std::string> others(const Config& row, const Option& option) {
  static const std::map<std::string, std::vector<std::string>> numbers = {
      {"split_size", {"2"}},
      {"accumulation_steps", {"1", "2"}},
      {"bucket_mb", {"25"}},
      {"virtual_stages", {"3"}},
      {"pass_times", {"1+1+4+0"}},
      {"live_micro_batches", {"1"}},
      {"schedule", {"gpipe"}},
      {"cut", {"blocks.0+head", "blocks.1"}},
      {"shard_group_mb", {"100"}},
      {"prefetch_groups", {"0"}},
      {"output_device", {"1"}},
      {"replicas_of_shards", {"2"}},
      {"loss_scale", {"64", "none"}},
      {"loss_scale_hysteresis", {"2"}},
      {"recompute_layers", {"blocks.0"}}};
  const std::string own = value_text(row, option);
  std::vector<std::string> texts;
  if (const auto* choice = std::get_if<runtime::ChoiceMember<Config>>(&option.member)) {
    texts.assign(choice->names.begin(), choice->names.end());
  }
  if (std::holds_alternative<bool Config::*>(option.member)) texts = {"on", "off"};
  if (const auto found = numbers.find(option.name); found != numbers.end()) texts = found->second;
  std::erase(texts, own);
  return texts;
}

/// Of those that strategies list: what places ranks or names what connects them, and the rule of a
/// cut, is the harness's; `async` changes when a layer waits, which nothing of this shows.
const std::set<std::string> shown_elsewhere = {"ranks",     "mesh",      "backend", "interface",
                                               "straggler", "partition", "async"};

std::string description_of(const Config& row) { return FirstRank(*accepted(row)).description(); }

/// Lists the accepted options that change nothing, as "name=value".
std::vector<std::string> without_effect(const strategies::StrategyEntry& strategy,
                                        std::set<std::string>& changed) {
  std::vector<std::string> found;
  for (const Config& row : rows_of(strategy)) {
    const std::string before = description_of(row);
    for (const std::string& name : strategy.options) {
      const Option& option = find_option(name);
      if (shown_elsewhere.contains(name) || !is_used(option, row, catalogue())) continue;
      // Who sums shows in the bytes that a step sends.
      if (name == "reduce_scatter" && placement_of(row).pipeline_ranks() > 1) continue;
      for (const std::string& text : others(row, option)) {
        Config other = row;
        set(other, name, text);
        const std::optional<Config> checked = accepted(other);
        if (!checked) continue;  // refused
        if (FirstRank(*checked).description() != before) {
          changed.insert(name);
        } else {
          found.push_back(fmt::format("{}={} with {}", name, text, row_name(row, catalogue())));
        }
      }
    }
  }
  return found;
}

class OptionEffect : public testing::TestWithParam<std::string> {};

TEST_P(OptionEffect, EveryAcceptedOptionChangesWhatARowDoes) {
  const strategies::StrategyEntry& strategy = strategies::find_strategy(GetParam());
  std::set<std::string> changed;
  EXPECT_EQ(fmt::format("{}", fmt::join(without_effect(strategy, changed), "\n")), "");
  for (const std::string& option : strategy.options) {
    EXPECT_TRUE(changed.contains(option) || shown_elsewhere.contains(option))
        << option << " was never changed: add a row that uses it";
  }
}

std::vector<std::string> trained_strategies() {
  std::vector<std::string> names = strategies::strategy_names();
  std::erase_if(names,
                [](const std::string& name) { return !strategies::find_strategy(name).make; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, OptionEffect, testing::ValuesIn(trained_strategies()),
                         [](const auto& of) { return of.param; });

TEST(OptionEffectDescription, IsTheSameTwice) {
  const Config row = row_of("zero1", {{"mixed_precision", "bfloat16"}}).value();
  EXPECT_EQ(description_of(row), description_of(row));
}

}  // namespace
}  // namespace stratagem::bench::option_effect_test
