// An option of a command: its words and the struct member with its value.
//
// Each struct of options has a table of them beside its members: strategies/options.cpp for those
// of strategies, bench/config/config.cpp for the rest of a row. The command line, the config file,
// the grid, the row's name, the results and the help read the tables (bench/config/options.h).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "strategies/runtime/choice.h"

namespace stratagem::strategies {

/// The condition under which a row reads an option; see bench/config/used_when.cpp.
enum class When {
  always,
  between_ranks,
  schedule_asks,
  schedule_is_searched,
  groups_recomputed,
  model_has_images,
  model_has_tokens,
  model_has_labels,
  model_takes_sizes,
  model_has_dropout,
  on_cpu,
  own_layers_on_cpu,  // not those of a model's file
  on_cuda,
  optimizer_is_sgd,
  order_is_random,
  // An option of a strategy has one of these:
  strategy_says,
  several_stages,
  replicas,
  several_replicas,  // they exchange whole gradients in buckets
  positions_shared,
  keys_exchanged,   // between ranks that share positions
  layers_exchange,  // in flight while a layer computes
  layers_gather,
  sums_are_shared,  // on CPUs
  copies_kept,
  cut_by_size,
  cut_by_count,
  state_sharded,
  parameters_sharded,
  halves_are_summed,
  scaled,
  scaled_dynamically,
};

/// The source of a text option's choices.
enum class Choices { any_text, strategies, models, schedules };

struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  bool high_excluded = false;
};

inline constexpr Bounds positive_count = {1};
/// The bound of a tensor's size, so that the product of two sizes, in bytes, fits 64 bits.
inline constexpr double most_numbers = 1'000'000'000;
inline constexpr Bounds more_than_zero = {.low = 0, .low_excluded = true};
inline constexpr Bounds zero_or_more = {0};

/// The permission for a training that continues from a checkpoint to change the option.
enum class AtResume {
  undecided,  // an error like must_match; a test finds it
  must_match,
  may_change,
};

struct OptionWords {
  std::string name;        // snake_case: config file, results
  std::string flag = {};   // by default the name in kebab-case, from the table
  std::string group = {};  // the heading in the help, from the table
  When used_when = When::always;
  std::string meaning;    // the meaning without unit and default
  std::string unit = {};  // empty: no unit
  Bounds bounds = {};
  Choices choices = Choices::any_text;
  bool is_switch = false;  // a flag without a value that inverts the default
  bool in_row_name = true;
  bool of_process = false;        // the same for all rows, and not an axis of a grid
  bool of_run = false;            // decides which launches run when, but not what they do
  std::string row_name_key = {};  // the key in row names if it is not the name: "batch"
  AtResume at_resume = AtResume::undecided;  // the table sets it for a whole group
  /// Only rows that agree in it do the same work. An option that must match at --resume does, too.
  bool of_work = false;
};

template <class Struct>
using MemberOf = std::variant<bool Struct::*, std::int64_t Struct::*, double Struct::*,
                              std::string Struct::*, std::vector<std::string> Struct::*,
                              std::vector<std::int64_t> Struct::*, runtime::ChoiceMember<Struct>>;

template <class Struct>
struct OptionOf : OptionWords {
  MemberOf<Struct> member;
};

}  // namespace stratagem::strategies
