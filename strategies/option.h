// An option of a command: its words and the member of a struct that has its value.
//
// Each struct of options has a table of them beside its members: strategies/options.cpp for what
// strategies read, bench/config/config.cpp for the rest of a row. The command line, the config
// file, the grid, the row's name, the results and the help read the tables
// (bench/config/options.h).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "strategies/runtime/choice.h"

namespace stratagem::strategies {

/// When a row reads an option; bench/config/used_when.cpp has the conditions.
enum class When {
  always,
  between_ranks,
  schedule_asks,
  model_has_images,
  model_has_tokens,
  model_has_labels,
  model_takes_sizes,
  on_cpu,
  on_cuda,
  optimizer_is_sgd,
  order_is_random,
  // Options that strategies list have one of these:
  strategy_says,
  several_stages,
  replicas,
  several_replicas,  // which exchange whole gradients, in buckets
  sharded_layers,
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

/// Where the choices of a text option come from.
enum class Choices { any_text, strategies, models, schedules };

struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  bool high_excluded = false;
};

inline constexpr Bounds positive_count = {1};
/// Bounds a size of tensors, so that the product of two sizes, in bytes, fits 64 bits.
inline constexpr double most_numbers = 1'000'000'000;
inline constexpr Bounds more_than_zero = {.low = 0, .low_excluded = true};
inline constexpr Bounds zero_or_more = {0};

/// States if a training that continues from a checkpoint may change the option.
enum class AtResume {
  undecided,  // refused like must_match; a test finds it
  must_match,
  may_change,
};

struct OptionWords {
  std::string name;        // snake_case: config file, results
  std::string flag = {};   // the table fills it in where it is the name in kebab-case
  std::string group = {};  // in the help; filled in by the table
  When used_when = When::always;
  std::string meaning;    // without unit and default
  std::string unit = {};  // empty for none
  Bounds bounds = {};
  Choices choices = Choices::any_text;
  bool is_switch = false;  // a flag without a value that turns the default round
  bool in_row_name = true;
  bool of_process = false;        // the same for all rows, so no axis of a grid
  bool of_run = false;            // decides which launches are made when, and none of them
  std::string row_name_key = {};  // where it differs from the name: "batch"
  AtResume at_resume = AtResume::undecided;  // a whole group's is filled in by the table
  /// Only rows that agree in it do the same work. What must match at --resume is work as well.
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
