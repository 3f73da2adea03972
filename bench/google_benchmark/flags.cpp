#include "bench/google_benchmark/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <stdexcept>
#include <string_view>

#include "bench/config/options.h"

namespace stratagem::bench {

namespace {

constexpr std::string_view prefix = "--benchmark_";

bool truth(const std::string& name, const std::string& value) {
  for (const char* yes : {"", "true", "yes", "on", "1"}) {
    if (value == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (value == no) return false;
  }
  throw std::invalid_argument(
      fmt::format("--benchmark_{}: \"{}\" is neither true nor false", name, value));
}

std::int64_t count(const std::string& name, const std::string& value) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 1) {
    throw std::invalid_argument(
        fmt::format("--benchmark_{}: \"{}\" is not a whole number of 1 or more", name, value));
  }
  return number;
}

std::string one_of(const std::vector<std::string>& choices, const std::string& name,
                   const std::string& value) {
  if (std::ranges::find(choices, value) != choices.end()) return value;
  throw std::invalid_argument(
      fmt::format("--benchmark_{}: \"{}\" is none of {}", name, value, fmt::join(choices, ", ")));
}

std::string format(const std::string& name, const std::string& value) {
  return one_of({"console", "json", "csv"}, name, value);
}

void add_context(BenchmarkFlags& flags, const std::string& value) {
  std::size_t start = 0;
  while (start <= value.size()) {
    const std::size_t end = std::min(value.find(',', start), value.size());
    const std::string pair = value.substr(start, end - start);
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw std::invalid_argument(
          fmt::format("--benchmark_context: \"{}\" is not KEY=VALUE", pair));
    }
    flags.context.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    start = end + 1;
  }
}

using Setter =
    std::function<void(BenchmarkFlags&, const std::string& name, const std::string& value)>;

template <class Member, class Convert>
Setter setter(Member BenchmarkFlags::*member, Convert convert) {
  return [=](BenchmarkFlags& flags, const std::string& name, const std::string& value) {
    flags.*member = convert(name, value);
  };
}

const std::map<std::string, Setter>& setters() {
  const auto text = [](const std::string&, const std::string& value) { return value; };
  const Setter color = [](BenchmarkFlags& flags, const std::string& name,
                          const std::string& value) {
    flags.console.color = value == "auto" ? std::nullopt : std::optional<bool>(truth(name, value));
  };
  const Setter tabular = [](BenchmarkFlags& flags, const std::string& name,
                            const std::string& value) {
    flags.console.counters_tabular = truth(name, value);
  };
  const Setter time_unit = [](BenchmarkFlags& flags, const std::string& name,
                              const std::string& value) {
    flags.console.time_unit = one_of({"ns", "us", "ms", "s"}, name, value);
  };
  static const std::map<std::string, Setter> all = {
      {"filter", setter(&BenchmarkFlags::filter, text)},
      {"list_tests", setter(&BenchmarkFlags::list_tests, truth)},
      {"repetitions", setter(&BenchmarkFlags::repetitions, count)},
      {"enable_random_interleaving", setter(&BenchmarkFlags::random_interleaving, truth)},
      {"format", setter(&BenchmarkFlags::format, format)},
      {"out", setter(&BenchmarkFlags::out, text)},
      {"out_format", setter(&BenchmarkFlags::out_format, format)},
      {"report_aggregates_only", setter(&BenchmarkFlags::report_aggregates_only, truth)},
      {"display_aggregates_only", setter(&BenchmarkFlags::display_aggregates_only, truth)},
      {"context", [](BenchmarkFlags& flags, const std::string&,
                     const std::string& value) { add_context(flags, value); }},
      {"color", color},
      {"counters_tabular", tabular},
      {"time_unit", time_unit}};
  return all;
}

/// Returns why a replay refuses a flag, by its name.
const std::map<std::string, std::string>& refusals() {
  const std::string length = "use --steps and --repetitions";
  static const std::map<std::string, std::string> all = {
      {"min_time", length},
      {"min_warmup_time", length},
      {"perf_counters", "no hardware events are counted"}};
  return all;
}

/// Returns false for another flag that is kept.
bool set(BenchmarkFlags& flags, OtherFlags other_flags, const std::string& name,
         const std::string& value) {
  if (const auto found = setters().find(name); found != setters().end()) {
    found->second(flags, name, value);
    return true;
  }
  if (other_flags == OtherFlags::kept) return false;
  if (const auto found = refusals().find(name); found != refusals().end()) {
    throw std::invalid_argument(
        fmt::format("--benchmark_{} is not supported; {}", name, found->second));
  }
  throw std::invalid_argument(unknown_flag(std::string(prefix) + name));
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const auto& [name, ignored] : setters()) names.push_back(name);
  for (const auto& [name, ignored] : refusals()) names.push_back(name);
  return names;
}

void read_environment(BenchmarkFlags& flags, OtherFlags other_flags) {
  for (const std::string& name : known_names()) {
    std::string variable = "BENCHMARK_" + name;
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    if (const char* value = std::getenv(variable.c_str())) set(flags, other_flags, name, value);
  }
}

}  // namespace

BenchmarkFlags parse_benchmark_flags(const std::vector<std::string>& arguments,
                                     OtherFlags other_flags) {
  BenchmarkFlags flags;
  read_environment(flags, other_flags);
  for (const std::string& argument : arguments) {
    if (argument.starts_with("--v=")) {
      flags.console.verbosity = argument.substr(4);
    } else if (!argument.starts_with(prefix)) {
      flags.others.push_back(argument);
    } else {
      const auto equals = argument.find('=');
      const std::string name = argument.substr(prefix.size(), equals - prefix.size());
      const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
      if (!set(flags, other_flags, name, value)) flags.others.push_back(argument);
    }
  }
  return flags;
}

bool is_known_flag(const std::string& flag) {
  const std::vector<std::string> names = known_names();
  return std::ranges::any_of(
      names, [&](const std::string& name) { return flag == std::string(prefix) + name; });
}

std::string unknown_flag(const std::string& flag) {
  std::vector<std::string> flags;
  for (const std::string& name : known_names()) flags.push_back(std::string(prefix) + name);
  return fmt::format("unknown option {}{}", flag,
                     models::did_you_mean(flag, flags, "; --help lists the options"));
}

std::vector<std::size_t> matching(const std::string& filter,
                                  const std::vector<std::string>& names) {
  const bool leave_out = filter.starts_with('-');
  const std::string expression = filter.substr(leave_out ? 1 : 0);
  std::vector<std::size_t> positions;
  try {
    const std::regex pattern(expression.empty() || expression == "all" ? "." : expression,
                             std::regex::extended);
    for (std::size_t index = 0; index < names.size(); ++index) {
      if (std::regex_search(names[index], pattern) != leave_out) positions.push_back(index);
    }
  } catch (const std::regex_error&) {
    throw std::invalid_argument(fmt::format(
        "--benchmark_filter: \"{}\" is not a regular expression (POSIX extended)", expression));
  }
  return positions;
}

}  // namespace stratagem::bench
