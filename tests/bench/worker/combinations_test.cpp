// Every strategy with what can be combined with it: dimensions of the mesh, state sharded over
// replicas, mixed precision, clipping, accumulation, recomputation, and a short last batch. Each
// combination computes the update of one device by the actions that a simulation of its plan has,
// or is refused in one line that names what would work. The combinations are generated, so a new
// strategy is among them.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/grid.h"
#include "bench/config/options.h"
#include "bench/config/verification_scope.h"
#include "bench/oracle/oracle.h"
#include "bench/worker/own_arithmetic.h"
#include "bench/worker/session.h"
#include "bench/worker/tasks.h"
#include "bench/worker/timed_run.h"
#include "strategies/data_parallel/layer_buckets.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/registry.h"
#include "strategies/schedules/simulate.h"
#include "strategies/stages/layer_groups.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/training.h"

namespace stratagem::bench::combinations_test {
namespace {

struct Combination {
  std::string strategy;
  std::string mesh;  // empty: the strategy has none
  std::string shard = "none";
  std::string mixed_precision = "none";
  bool clips = false;
  bool accumulates = false;
  bool recomputes = false;
  bool in_own_arithmetic = true;  // too
};

/// By day a sample of them.
bool tries_all() { return std::getenv("STRATAGEM_EVERY_COMBINATION") != nullptr; }

bool has(const Combination& of, const char* dimension) {
  return of.mesh.find(dimension) != std::string::npos;
}

bool has_tokens(const Combination& of) {
  return strategies::find_strategy(of.strategy).shares_sequence || has(of, "context");
}

/// Its options on the command line.
std::map<std::string, std::string> options_of(const Combination& of) {
  const auto& entry = strategies::find_strategy(of.strategy);
  std::map<std::string, std::string> options = {{"strategy", of.strategy},
                                                {"model", has_tokens(of) ? "gpt-tiny" : "toy"},
                                                {"global_batch_size", "10"},
                                                {"oversubscribe", "on"}};
  if (has_tokens(of)) options["sequence_length"] = "8";
  if (has(of, "context") && (of.clips || of.accumulates)) {
    options["context_exchange"] = of.clips ? "ring" : "gather";
  }
  if (!of.mesh.empty()) options["mesh"] = of.mesh;
  if (of.shard != "none") options["shard"] = of.shard;
  if (of.mixed_precision != "none") options["mixed_precision"] = of.mixed_precision;
  if (of.clips) options["clip_gradients"] = "0.1";
  if (of.accumulates) options["accumulation_steps"] = "2";
  const bool has_attention = options["model"] == "gpt-tiny";
  if (of.recomputes) options["recompute"] = has_attention && of.clips ? "selective" : "full";
  const bool has_buckets =
      entry.reads("bucket_mb") && of.shard == "none" && (has(of, "data") || has(of, "context"));
  if (of.recomputes && has_buckets) options["bucket_mb"] = "0.0001";  // a layer
  return options;
}

std::string command_of(const Combination& of) {
  std::string command;
  for (const auto& [name, text] : options_of(of))
    command += find_option(name).flag + " " + text + " ";
  return command;
}

/// As the command and its check make it. Throws std::invalid_argument for what is refused.
Config row_of(const Combination& of) {
  static const Catalogue catalogue = registered_catalogue();
  Selection selection;
  for (const auto& [name, text] : options_of(of)) {
    selection.options[name] = {{text}, Origin::command_line, find_option(name).flag};
  }
  selection.options["split_size"] = {{"2"}, Origin::preset, "the test"};
  const CheckedRow checked =
      check({.configs = {make_grid(selection, catalogue, 1).at(0)}}, {}).rows.at(0);
  if (!checked.error.empty()) throw std::invalid_argument(checked.error);
  return checked.config;
}

/// Leaves recomputation out where there is nothing to recompute: the toy has two layers.
Combination with_an_effect(Combination of) {
  if (!of.recomputes) return of;
  try {
    row_of(of);
  } catch (const std::invalid_argument& error) {
    of.recomputes = std::string(error.what()).find("nothing to recompute") == std::string::npos;
  }
  return of;
}

/// Returns true for options that exclude each other: state is sharded over replicas, once, and some
/// strategies have one device, or one process.
bool is_to_be_refused(const Combination& of) {
  const auto& entry = strategies::find_strategy(of.strategy);
  const bool has_replicas = has(of, "data") || has(of, "context");
  if (of.shard != "none" && (!has_replicas || entry.shards.has_value())) return true;
  return entry.one_process && (of.mixed_precision != "none" || of.accumulates);
}

/// A strategy's usual mesh, the smallest, and those with one dimension more.
std::vector<std::string> meshes_of(const strategies::StrategyEntry& entry) {
  if (!entry.multi_device || entry.one_process) return {""};
  const auto mesh_with = [&entry](const std::string& another) {
    std::string mesh;
    for (const std::string name : {"data", "pipeline", "context", "tensor"}) {
      if (name != another && !entry.usually_spreads_over(name)) continue;
      mesh += (mesh.empty() ? "" : "/") + name + "=2";
    }
    return mesh;
  };
  std::vector<std::string> meshes = {mesh_with("")};
  for (const std::string& name : entry.dimensions) {
    if (!entry.usually_spreads_over(name)) meshes.push_back(mesh_with(name));
  }
  return meshes;
}

/// All at night. By day each pair of choices: on the usual mesh every way to shard in every
/// precision, on another one precision for each way that it has, and one way to clip and to
/// accumulate for each. A row's own arithmetic is then that of the usual mesh: another one has the
/// same kernels. What is refused takes no time.
std::vector<Combination> combinations_of(const std::string& strategy) {
  const std::vector<std::string> meshes = meshes_of(strategies::find_strategy(strategy));
  const std::vector<std::string> shards = {"none", "optimizer", "gradients", "parameters"};
  const std::vector<std::string> precisions = {"none", "bfloat16", "float16"};
  constexpr std::size_t ways = 4;  // to clip and to accumulate
  std::vector<Combination> all;
  for (std::size_t mesh = 0; mesh < meshes.size(); ++mesh) {
    const bool shards_state =
        !is_to_be_refused({.strategy = strategy, .mesh = meshes[mesh], .shard = shards.back()});
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      for (std::size_t precision = 0; precision < precisions.size(); ++precision) {
        const bool by_day = mesh == 0 || !shards_state || precision == (shard + mesh) % 3;
        for (std::size_t way = 0; way < ways; ++way) {
          if (!tries_all() && (!by_day || way != (mesh + shard + precision) % ways)) continue;
          all.push_back({.strategy = strategy,
                         .mesh = meshes[mesh],
                         .shard = shards[shard],
                         .mixed_precision = precisions[precision],
                         .clips = way >= 2,
                         .accumulates = way % 2 == 1,
                         .recomputes = (shard + precision + way / 2) % 2 == 0,
                         .in_own_arithmetic = mesh == 0 || tries_all()});
        }
      }
    }
  }
  return all;
}

/// What the row's plan needs to know of its model.
strategies::ModelParts parts_of(const Session& session) {
  const Config& row = session.config;
  const models::Model model = session.workload->make_meta_model();
  const double width = session.workload->options().width;
  const auto groups = stages::groups_of(model.layers, plan_request(row), width);
  const int devices = session.placement.devices();
  const auto segments = data_parallel::segments_of(model.layers, row, devices, width);
  return {.groups_of_stage = groups.per_stage,
          .empty_groups = groups.empty,
          .kept_groups = is_data_parallel(row) ? segments.kept : groups.kept,
          .has_buffers = !models::buffers(model.layers).empty(),
          .owners = segments.owners};
}

using DeviceLists = std::vector<std::vector<std::string>>;  // [device of this rank]: actions

/// What this rank ran, without what was in flight beside its lists.
DeviceLists executed(const Session& session, const strategies::PendingStep& step) {
  DeviceLists lists(session.group.devices.size());
  for (const auto& entry : step.execution()) {
    const schedules::ActionKind kind = entry.action.kind;
    if (schedules::is_in_flight(kind) || schedules::is_wait_inside(kind)) continue;
    lists.at(static_cast<std::size_t>(entry.device)).push_back(to_string(entry.action));
  }
  return lists;
}

/// What a simulation of the row's plan runs on the same devices.
DeviceLists simulated(const Session& session, std::int64_t samples) {
  strategies::PlanRequest request = plan_request(session.config, parts_of(session));
  request.samples = samples;
  request.replica = session.placement.replica_of(session.rank());
  const strategies::StepPlan plan = strategies::plan_of(request, outline_of(session.config));
  const int own = static_cast<int>(session.group.devices.size());
  const int first = session.placement.pipeline_rank_of(session.rank()) * own;
  DeviceLists lists(session.group.devices.size());
  const auto timeline = schedules::simulate(plan.schedule, [](const auto&) { return 1; });
  for (const schedules::TimelineEntry& entry : timeline.entries) {
    const int device = entry.device - first;
    if (device < 0 || device >= own || schedules::is_in_flight(entry.action.kind)) continue;
    lists.at(static_cast<std::size_t>(device)).push_back(to_string(entry.action));
  }
  return lists;
}

/// Three steps in float64, and the actions and exchanges of one more.
void expect_update_of_oracle(const Session& session) {
  const reports::Verdict verdict = compare_with_oracle(*session.strategy, *session.workload);
  EXPECT_TRUE(verdict.passed) << verdict.message;
  session.reset_counts();
  const models::Batch batch = session.workload->make_batch(0);
  const auto step = session.strategy->step(batch);
  synchronize(session);
  EXPECT_EQ(executed(session, *step), simulated(session, batch.size()));
  EXPECT_EQ(distributed::difference_from_costs(session.counts(), costs_of_a_step(session)), "");
}

/// The first step of a training, on a batch of 3, as at the end of an epoch.
void expect_short_batch_equals_oracle(const Session& session) {
  const models::Batch batch = session.workload->make_batch(1).slice(0, 3);
  const auto partition = session.strategy->batch_partition(batch.size());
  const OracleStep expected =
      Oracle(*session.workload, batch, partition, session.strategy->replica()).step();
  const auto step = session.strategy->step(batch);
  strategies::StateDictionary state = session.strategy->state();
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("loss_scaler."); });
  EXPECT_EQ(executed(session, *step), simulated(session, batch.size()));
  EXPECT_NEAR(step->loss(), expected.loss, 1e-12);
  EXPECT_LT(strategies::largest_difference(state, expected.state), 1e-11);
}

void expect_update_of_one_device(const Config& row, bool in_own_arithmetic) {
  Config exact = row;
  exact.dtype = "float64";
  make_update_show(exact);
  const auto expect = [&](distributed::RankContext* ranks) {
    const TaskContext context{.ranks = ranks};
    {
      const Session session(exact, workload_options(exact), context);
      const strategies::StateDictionary start = session.strategy->state();
      expect_update_of_oracle(session);
      session.strategy->load(start);
      expect_short_batch_equals_oracle(session);
    }
    if (!in_own_arithmetic) return;
    const reports::Verdict own = verify_own_arithmetic(row, context);
    EXPECT_TRUE(own.passed) << own.message;
  };
  const int ranks = placement_of(row).ranks;
  if (ranks == 1) return expect(nullptr);
  runtime::on_ranks(ranks, [&](distributed::RankContext& context) { expect(&context); });
}

void expect_refusal(const Combination& of, const std::string& line) {
  EXPECT_TRUE(is_to_be_refused(of)) << line;
  EXPECT_THAT(line, testing::StartsWith("--"));
  EXPECT_THAT(line, testing::Not(testing::HasSubstr("\n")));
  // What would work: strategies that have it, or a mesh.
  EXPECT_THAT(line, testing::AnyOf(testing::ContainsRegex("it applies to .*ddp"),
                                   testing::HasSubstr("mesh")));
}

class Combinations : public testing::TestWithParam<std::string> {};

TEST_P(Combinations, EachTrainsAsOneDeviceOrIsRefusedInOneLine) {
  bool recomputes = false;
  for (const Combination& each : combinations_of(GetParam())) {
    const Combination of = with_an_effect(each);
    recomputes |= of.recomputes;
    SCOPED_TRACE(command_of(of));
    Config row;
    try {
      row = row_of(of);
    } catch (const std::invalid_argument& error) {
      expect_refusal(of, error.what());
      continue;
    }
    EXPECT_FALSE(is_to_be_refused(of));
    try {
      expect_update_of_one_device(row, of.in_own_arithmetic);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  // Without a pipeline schedule, each device's one layer runs backward right after its forward.
  EXPECT_TRUE(recomputes || GetParam().ends_with("model_parallel"));
}

TEST(OrdersOfAMesh, AllTrainAsOneDevice) {
  for (const auto& [strategy, dimensions] : std::map<std::string, std::vector<std::string>>{
           {"sequence_parallel", {"context=2", "data=2", "tensor=2"}},
           {"pipeline", {"context=2", "data=2", "pipeline=2"}}}) {
    std::vector<std::string> order = dimensions;
    do {
      const Combination of{.strategy = strategy,
                           .mesh = fmt::format("{}", fmt::join(order, "/")),
                           .shard = "parameters",
                           .clips = true};
      SCOPED_TRACE(command_of(of));
      expect_update_of_one_device(row_of(of), /*in_own_arithmetic=*/false);
    } while (std::ranges::next_permutation(order).found);
  }
}

std::vector<std::string> trained_strategies() {
  std::vector<std::string> names = strategies::strategy_names();
  std::erase_if(names,
                [](const std::string& name) { return !strategies::find_strategy(name).make; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Every, Combinations, testing::ValuesIn(trained_strategies()),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace stratagem::bench::combinations_test
