#include "bench/config/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

#include "bench/config/core_demand.h"
#include "bench/config/options.h"
#include "bench/config/placement.h"
#include "reports/statistics.h"
#include "strategies/ranks/mesh.h"

namespace stratagem::bench {
namespace {

constexpr std::size_t most_rows = 10000;

struct Axis {
  const Option* option;  // nullptr: per_device_batch_size
  const Chosen* chosen;
};

const Chosen* find_chosen(const Selection& selection, const std::string& name) {
  const auto found = selection.options.find(name);
  return found == selection.options.end() ? nullptr : &found->second;
}

bool by_user(const Chosen* chosen) { return chosen != nullptr && chosen->by_user(); }

std::string where_of(const Chosen* chosen, const Option& option) {
  return chosen == nullptr ? option.flag : chosen->where;
}

// An option that is not part of a row's name must have one value: two rows would share a name.
void require_one_value(const Axis& axis) {
  if (axis.option != nullptr && !axis.option->in_row_name && axis.chosen->texts.size() > 1) {
    throw std::invalid_argument(
        fmt::format("{}: {} values; give one value, which applies to all rows", axis.chosen->where,
                    axis.chosen->texts.size()));
  }
}

std::vector<Axis> axes_of(const Selection& selection) {
  std::vector<Axis> axes;
  for (const Option& option : option_table()) {
    if (const Chosen* chosen = find_chosen(selection, option.name)) {
      axes.push_back({&option, chosen});
    }
  }
  if (const Chosen* each = find_chosen(selection, per_device_batch_size)) {
    axes.push_back({nullptr, each});
  }
  std::size_t rows = 1;
  for (const Axis& axis : axes) {
    require_one_value(axis);
    rows *= axis.chosen->texts.size();
    if (rows > most_rows) {
      throw std::invalid_argument(
          fmt::format("the grid has more than {} rows; give fewer values", most_rows));
    }
  }
  return axes;
}

class Grid {
 public:
  Grid(const Selection& selection, const Catalogue& catalogue, std::int64_t baseline_cores)
      : selection_(selection),
        catalogue_(catalogue),
        baseline_cores_(baseline_cores),
        axes_(axes_of(selection)) {}

  std::vector<Config> rows() {
    expand(0, Config{}, 0);
    refuse_unused();
    if (rows_.empty()) {
      throw std::invalid_argument(fmt::format("no split size of the preset fits the batch; give {}",
                                              find_option("split_size").flag));
    }
    settle_repetitions();
    return std::move(rows_);
  }

 private:
  // The first axis changes slowest. `per_device` is 0 unless that batch was asked for.
  void expand(std::size_t axis, const Config& config, std::int64_t per_device) {
    if (axis == axes_.size()) {
      finish(config, per_device);
      return;
    }
    const Axis& current = axes_[axis];
    for (const std::string& text : current.chosen->texts) {
      Config next = config;
      std::int64_t each = per_device;
      if (current.option != nullptr) {
        set_value(next, *current.option, text, current.chosen->where, &catalogue_);
      } else {
        Config holder;
        set_value(holder, find_option("global_batch_size"), text, current.chosen->where, nullptr);
        each = holder.global_batch_size;
      }
      expand(axis + 1, next, each);
    }
  }

  void finish(Config config, std::int64_t per_device) {
    settle_micro_batches(config);
    note_used(config);
    settle_devices(config);
    if (per_device > 0) config.global_batch_size = per_device * config.devices;
    settle_image_size(config);
    settle_tokens(config);
    settle_cut(config);
    settle_inputs(config);
    if (!split_fits(config)) return;
    const std::int64_t job_cores = config.devices * config.cores_per_device;
    canonicalise(config);
    config.plugin = catalogue_.plugins;
    add(config);
    if (config.strategy == "single" && config.device == "cpu" && job_cores > 1 &&
        (job_cores <= baseline_cores_ || config.oversubscribe)) {
      config.cores_per_device = job_cores;
      add(config);
    }
  }

  void note_used(const Config& config) {
    for (const Axis& axis : axes_) {
      if (axis.option != nullptr && is_used(*axis.option, config, catalogue_)) {
        used_.insert(axis.option->name);
      }
    }
    // A row without stages has one micro-batch anyway.
    const strategies::StrategyEntry* strategy = catalogue_.strategy(config.strategy);
    const bool by_size = is_used(find_option("split_size"), config, catalogue_);
    if (strategy != nullptr && strategy->reads("accumulation_steps") && !by_size) {
      used_.insert("accumulation_steps");
    }
  }

  // Stages cut the batch by a size or by a count; a size from the user decides.
  void settle_micro_batches(Config& config) const {
    Config by_size = config;
    by_size.accumulation_steps = 1;
    const bool has_size = by_user(find_chosen(selection_, "split_size"));
    if (has_size && is_used(find_option("split_size"), by_size, catalogue_)) config = by_size;
  }

  // If the user gives only device ids, they decide the number of devices.
  void settle_devices(Config& config) const {
    if (config.mesh != "auto" && !by_user(find_chosen(selection_, "devices"))) {
      config.devices = ranks::parse_mesh(config.mesh).size();
    }
    const Chosen* ids = find_chosen(selection_, "device_ids");
    const auto named = static_cast<std::int64_t>(config.device_ids.size());
    if (named == 0) return;
    if (!by_user(find_chosen(selection_, "devices"))) config.devices = named;
    if (config.devices != named) {
      throw std::invalid_argument(fmt::format(
          "{}: the number of ids is {}, and the number of devices {}; give equal numbers",
          where_of(ids, find_option("device_ids")), named, config.devices));
    }
  }

  void settle_image_size(Config& config) const {
    const models::ModelEntry* model = catalogue_.model(config.model);
    if (model == nullptr || !model->has_images()) {
      config.image_size = 0;
      return;
    }
    const Chosen* chosen = find_chosen(selection_, "image_size");
    if (chosen == nullptr) config.image_size = model->default_image_size;
    if (config.image_size < model->smallest_image) {
      throw std::invalid_argument(fmt::format("{}: {} is too small for {}; expected {} or more",
                                              where_of(chosen, find_option("image_size")),
                                              config.image_size, config.model,
                                              model->smallest_image));
    }
  }

  // A model of tokens has one loss; its sequence has the requested length or the longest.
  void settle_tokens(Config& config) const {
    const models::ModelEntry* model = catalogue_.model(config.model);
    if (model == nullptr || !model->has_tokens()) {
      config.sequence_length = 0;
      return;
    }
    config.loss = "cross_entropy";
    const Chosen* chosen = find_chosen(selection_, "sequence_length");
    if (config.sequence_length == 0) config.sequence_length = model->usual_sequence();
    if (config.sequence_length > model->longest_sequence) {
      throw std::invalid_argument(fmt::format("{}: {} is too long for {}; expected 1 to {}",
                                              where_of(chosen, find_option("sequence_length")),
                                              config.sequence_length, config.model,
                                              model->longest_sequence));
    }
  }

  // Returns whether the model decides the option's value if the option is not used.
  static bool is_settled(const Option& option) {
    return option.name == "image_size" || option.name == "sequence_length" || option.name == "loss";
  }

  void settle_cut(const Config& config) const {
    const Option& partition = find_option("partition");
    if (is_used(partition, config, catalogue_) && !config.cut.empty() &&
        !is_default(config, partition)) {
      throw std::invalid_argument(
          fmt::format("{} and {} exclude each other; give one of them",
                      where_of(find_chosen(selection_, "cut"), find_option("cut")),
                      where_of(find_chosen(selection_, "partition"), partition)));
    }
  }

  void settle_inputs(const Config& config) const {
    if (config.inputs != "device" || config.protocol != "tutorial") return;
    throw std::invalid_argument(fmt::format(
        "{} device: --protocol tutorial makes a new batch for each step; leave one of them "
        "out",
        where_of(find_chosen(selection_, "inputs"), find_option("inputs"))));
  }

  bool split_fits(const Config& config) const {
    const Option& split = find_option("split_size");
    if (!is_used(split, config, catalogue_) || config.split_size <= config.global_batch_size) {
      return true;
    }
    const Chosen* chosen = find_chosen(selection_, "split_size");
    if (chosen != nullptr && !chosen->by_user()) return false;
    throw std::invalid_argument(fmt::format("{}: {} is above the batch of {}; expected 1 to {}",
                                            where_of(chosen, split), config.split_size,
                                            config.global_batch_size, config.global_batch_size));
  }

  void canonicalise(Config& config) const {
    for (const Option& option : option_table()) {
      if (!is_settled(option) && !is_used(option, config, catalogue_)) {
        reset_to_default(config, option);
      }
    }
    const strategies::StrategyEntry* strategy = catalogue_.strategy(config.strategy);
    if (strategy != nullptr && !strategy->multi_device) {
      config.devices = 1;
      config.device_ids.resize(std::min<std::size_t>(config.device_ids.size(), 1));
    }
    leave_out_usual_ids(config);
    if (strategy != nullptr) leave_out_usual_arrangement(config, *strategy);
    leave_out_usual_backend(config);
  }

  // Gives rows that do the same one name: a mesh or ranks that equal the default become the
  // default.
  static void leave_out_usual_arrangement(Config& config,
                                          const strategies::StrategyEntry& strategy) {
    if (config.mesh != "auto") config.mesh = ranks::parse_mesh(config.mesh).shortest();
    if (!strategy.multi_device || strategy.one_process) return;
    const auto usual = usual_mesh(strategy.usually_over(), static_cast<int>(config.devices));
    const auto mesh = config.mesh == "auto" ? usual : ranks::parse_mesh(config.mesh);
    if (!mesh) return;
    if (usual && mesh->shortest() == usual->shortest()) config.mesh = "auto";
    if (config.ranks == usual_ranks(*mesh)) config.ranks = 0;
  }

  static void leave_out_usual_backend(Config& config) {
    Config usual = config;
    usual.backend = "auto";
    if (backend_of(usual).name() == config.backend.name()) config.backend = "auto";
  }

  void settle_repetitions() {
    for (Config& row : rows_) {
      if (row.repetitions == 0) row.repetitions = rounds_of_table(rows_.size());
    }
  }

  void add(const Config& config) {
    if (seen_.insert(to_json(config).dump()).second) rows_.push_back(config);
  }

  void refuse_unused() const {
    for (const Axis& axis : axes_) {
      if (axis.option == nullptr || !axis.chosen->by_user() || used_.contains(axis.option->name)) {
        continue;
      }
      if (axis.option->name == "accumulation_steps" &&
          by_user(find_chosen(selection_, "split_size"))) {
        throw std::invalid_argument(
            fmt::format("{}: --split-size already splits the batch; leave one of them out",
                        axis.chosen->where));
      }
      const std::string users = users_and_conditions(*axis.option, catalogue_);
      throw std::invalid_argument(
          fmt::format("{}: has no effect on the chosen rows; it applies to {}", axis.chosen->where,
                      users.empty() ? "no strategy or model of this build" : users));
    }
  }

  const Selection& selection_;
  const Catalogue& catalogue_;
  std::int64_t baseline_cores_;
  std::vector<Axis> axes_;
  std::vector<Config> rows_;
  std::set<std::string> seen_;
  std::set<std::string> used_;
};

}  // namespace

std::vector<Config> make_grid(const Selection& selection, const Catalogue& catalogue,
                              std::int64_t baseline_cores) {
  return Grid(selection, catalogue, baseline_cores).rows();
}

std::int64_t rounds_of_table(std::size_t rows) {
  return reports::launches_to_tell_apart(rows * (rows - 1) / 2);
}

}  // namespace stratagem::bench
