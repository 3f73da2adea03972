// stratagem verify: compares every strategy with its oracle, on every family of models it trains.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "bench/config/catalogue.h"
#include "bench/config/grid.h"
#include "bench/config/placement.h"
#include "bench/config/run_options.h"
#include "bench/launch/exit_codes.h"
#include "bench/machine/machine.h"
#include "bench/measure/environment.h"
#include "bench/measure/job_launch.h"
#include "bench/measure/preparation.h"
#include "bench/worker/worker_main.h"
#include "reports/text_table.h"
#include "strategies/backends/backend.h"
#include "strategies/registry.h"
#include "strategies/runtime/print_line.h"
#include "tools/stratagem/parse.h"

namespace stratagem::tools {
namespace {

struct Outcome {
  std::string name;
  std::string dtype;
  std::optional<reports::Verification> verification;
  std::string error;  // error of a launch without a result
};

/// Models of a family have the same layers, so the one with the fewest represents all.
std::vector<std::string> smallest_of_each_family(const bench::Catalogue& catalogue) {
  std::map<std::string, const models::ModelEntry*> smallest;
  for (const models::ModelEntry& model : catalogue.models) {
    const auto [found, added] =
        smallest.try_emplace(model.family.empty() ? model.name : model.family, &model);
    if (!added && model.layers < found->second->layers) found->second = &model;
  }
  std::vector<std::string> names;
  for (const auto& [family, model] : smallest) names.push_back(model->name);
  return names;
}

/// Fills what the user leaves open: all strategies and schedules, one model of each family, small,
/// with a batch that the split does not divide.
void fill(bench::Selection& selection, const bench::Catalogue& catalogue) {
  const auto offer = [&](const std::string& option, std::vector<std::string> texts) {
    selection.options.try_emplace(option,
                                  bench::Chosen{std::move(texts), bench::Origin::preset, "verify"});
  };
  std::vector<std::string> strategies;
  for (const auto& strategy : catalogue.strategies) strategies.push_back(strategy.name);
  offer("strategy", strategies);
  std::vector<std::string> schedules;
  for (const auto& schedule : catalogue.schedules) schedules.push_back(schedule.name);
  offer("schedule", schedules);
  offer("model", smallest_of_each_family(catalogue));
  std::int64_t smallest_image = 0;
  for (const std::string& name : selection.options.at("model").texts) {
    const models::ModelEntry* model = catalogue.model(name);
    if (model == nullptr || model->fixed_size) continue;
    smallest_image = std::max(smallest_image, model->smallest_image);
  }
  // Three positions a side in the last feature map: a micro-batch of one sample has enough elements
  // for its BatchNorm.
  if (smallest_image > 0) offer("image_size", {std::to_string(3 * smallest_image)});
  offer("devices", {"2"});
  if (!selection.options.contains(bench::per_device_batch_size)) offer("global_batch_size", {"8"});
  offer("split_size", {"3"});
  // Nothing is timed: devices may share the core of a small machine.
  if (bench::available_cores().size() < 2) offer("oversubscribe", {"on"});
}

/// A strategy that usually spreads over two dimensions of the mesh needs four devices. Nothing is
/// timed, so they may share two cores, and all devices what GPUs there are; ranks that share one
/// need Gloo.
void fit_devices(std::vector<bench::Config>& configs) {
  const int gpus = backends::cuda_device_count();
  for (bench::Config& config : configs) {
    const auto& strategy = strategies::find_strategy(config.strategy);
    const bool two_dimensions = strategy.usually_over().size() == 2;
    if (two_dimensions) config.devices = 4;
    if (config.device == "cpu") {
      if (two_dimensions) config.device_ids = {0, 1, 1, 0};
    } else if (gpus > 0 && config.devices > gpus) {
      for (int device = 0; device < config.devices; ++device) {
        config.device_ids.push_back(device % gpus);
      }
      if (bench::placement_of(config).ranks > 1) config.backend = "gloo";
    }
  }
}

/// Leaves out rows that cannot be trained, unless the user asked for them: the check refuses those.
/// With a strategy and a model the user asks for one schedule that works, not for all.
void leave_out_what_nobody_named(std::vector<bench::Config>& configs,
                                 const bench::Selection& selection,
                                 const bench::Catalogue& catalogue) {
  const auto named = [&](const char* option) { return selection.options.at(option).by_user(); };
  std::set<std::pair<std::string, std::string>> trained;  // strategies with their models
  for (const bench::Config& config : configs) {
    if (bench::can_train(config, catalogue)) trained.emplace(config.strategy, config.model);
  }
  std::erase_if(configs, [&](const bench::Config& config) {
    const bool asked_for =
        named("strategy") && named("model") &&
        (named("schedule") || !trained.contains({config.strategy, config.model}));
    return !asked_for && !bench::can_train(config, catalogue);
  });
}

Outcome verify_row(const bench::PreparedRow& row, const bench::MeasureEnvironment& environment) {
  const auto launched = bench::launch_job(
      environment, bench::job_about<bench::VerifyJob>(row.config, row.placement.ranks));
  if (launched.status == bench::LaunchStatus::interrupted) throw bench::Interrupted();
  if (launched.status != bench::LaunchStatus::ok) {
    return {row.name, compute_format(row.config).name(), std::nullopt, launched.error.message};
  }
  return {row.name, compute_format(row.config).name(), launched.result.verification, ""};
}

void print_table(const std::vector<Outcome>& outcomes) {
  reports::TextColumn name{.header = "row", .right_aligned = false, .importance = 5};
  reports::TextColumn arithmetic{.header = "in", .right_aligned = false, .importance = 4};
  reports::TextColumn error{.header = "error", .importance = 4};
  reports::TextColumn limit{.header = "limit", .importance = 1};
  reports::TextColumn result{.header = "", .right_aligned = false, .importance = 3};
  reports::TextColumn oracle{.header = "oracle", .right_aligned = false, .importance = 2};
  reports::TextColumn scope{.header = "scope", .right_aligned = false, .importance = 1};
  const auto add = [&](const std::string& row, const std::string& format,
                       const reports::Verdict* found, bool differs) {
    name.cells.push_back(row);
    arithmetic.cells.push_back(format);
    error.cells.push_back(found ? fmt::format("{:.1e}", found->max_relative_error) : "");
    limit.cells.push_back(found ? fmt::format("{:.0e}", found->tolerance) : "");
    result.cells.push_back(!found ? "LOST" : differs ? "DIFFERS" : "equal");
    oracle.cells.push_back(found ? found->oracle : "");
    scope.cells.push_back(found ? found->scope : "");
  };
  for (const Outcome& outcome : outcomes) {
    const auto& first = outcome.verification;
    const reports::Verdict* own =
        first && first->own_arithmetic ? &*first->own_arithmetic : nullptr;
    // The first represents both if the second is missing.
    add(outcome.name, "float64", first ? &*first : nullptr, first && !own && !first->passed);
    if (own != nullptr) add("", outcome.dtype, own, !own->passed);
  }
  fmt::print("{}",
             reports::render_table({name, arithmetic, error, limit, result, oracle, scope}, 0));
}

int conclude(const std::vector<Outcome>& outcomes) {
  int code = bench::exit_codes::done;
  for (const Outcome& outcome : outcomes) {
    if (outcome.verification && outcome.verification->passed) continue;
    runtime::print_line(
        stderr, fmt::format("{}: {}", outcome.name,
                            outcome.verification ? outcome.verification->message : outcome.error));
    if (!outcome.verification) {
      code = bench::exit_codes::lost;
    } else if (code == bench::exit_codes::done) {
      code = bench::exit_codes::mismatch;
    }
  }
  return code;
}

}  // namespace

int verify(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app(
      "Verifies that strategies compute the update of one device, in float64 and in the row's own "
      "number format and kernels. Without options it verifies every strategy and schedule with the "
      "smallest model of each family on two devices.",
      "stratagem verify");
  bench::RunOptions typed;
  // Leaves out the options of measuring: nothing is timed and no file is written.
  bench::add_row_options(app, typed, catalogue,
                         [](const bench::Option& option) { return option.group == "Measurement"; });
  bench::add_sources(app, typed);
  if (!parse(app, arguments)) return 0;
  bench::Selection selection = bench::select(typed);
  fill(selection, catalogue);
  const bool by_user = selection.options.at("devices").by_user() ||
                       selection.options.contains("device_ids") ||
                       selection.options.contains("mesh");
  std::vector<bench::Config> configs = bench::make_grid(
      selection, catalogue, static_cast<std::int64_t>(bench::available_cores().size()));
  if (!by_user) fit_devices(configs);
  leave_out_what_nobody_named(configs, selection, catalogue);

  const bench::Interrupt interrupt;
  bench::Progress progress(bench::Progress::style(selection.files.quiet));
  const auto environment =
      bench::make_environment(catalogue, interrupt, progress, false, bench::worker_main);
  const auto rows = bench::check_rows(configs, environment, progress);
  progress.phase("verifying", rows.size());
  std::vector<Outcome> outcomes;
  for (const bench::PreparedRow& row : rows) {
    progress.begin(row.name, "");
    outcomes.push_back(verify_row(row, environment));
    progress.end(std::nullopt);
  }
  progress.finish();
  print_table(outcomes);
  return conclude(outcomes);
}

}  // namespace stratagem::tools
