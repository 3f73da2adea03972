#include "bench/google_benchmark/collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>

#include "reports/statistics.h"

namespace stratagem::bench {

namespace {

constexpr std::int64_t kibi = 1024;
constexpr const char* reduce_scatter_library = "reduce_scatter_library";

/// Computes each link's share of the algorithm bandwidth from the number of ranks.
using Factor = double (*)(double ranks);

const std::map<std::string, Factor, std::less<>>& factors() {
  static const std::map<std::string, Factor, std::less<>> all = {
      {"all_reduce", [](double ranks) { return 2 * (ranks - 1) / ranks; }},
      {"reduce_scatter", [](double ranks) { return (ranks - 1) / ranks; }},
      {reduce_scatter_library, [](double ranks) { return (ranks - 1) / ranks; }},
      {"all_gather", [](double ranks) { return (ranks - 1) / ranks; }},
      {"broadcast", [](double) { return 1.0; }},
      {"reduce", [](double) { return 1.0; }},
      {"gather", [](double ranks) { return (ranks - 1) / ranks; }},
      {"scatter", [](double ranks) { return (ranks - 1) / ranks; }},
      {"all_to_all", [](double ranks) { return (ranks - 1) / ranks; }},
      {"rotate", [](double) { return 1.0; }},
      {"send", [](double) { return 1.0; }}};
  return all;
}

}  // namespace

const std::vector<std::string>& collective_names() {
  static const std::vector<std::string> names = {
      "all_reduce", "reduce_scatter", reduce_scatter_library, "all_gather", "broadcast", "reduce",
      "gather",     "scatter",        "all_to_all",           "rotate",     "send"};
  return names;
}

std::vector<std::string> distinct_collectives(const Config& config) {
  std::vector<std::string> names = collective_names();
  if (config.device != "cpu" || config.backend != "gloo") {
    std::erase(names, reduce_scatter_library);
  }
  return names;
}

double bus_factor(std::string_view collective, int ranks) {
  const auto found = factors().find(collective);
  if (found == factors().end()) {
    throw std::invalid_argument(fmt::format("--collectives: unknown collective \"{}\"; choices: {}",
                                            collective, fmt::join(collective_names(), ", ")));
  }
  return found->second(ranks);
}

std::int64_t parse_bytes(std::string_view text, const std::string& where) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::map<std::string_view, std::int64_t> units = {
      {"", 1}, {"K", kibi}, {"M", kibi * kibi}, {"G", kibi * kibi * kibi}};
  const auto scale = units.find(unit);
  if (error != std::errc() || number < 1 || scale == units.end()) {
    throw std::invalid_argument(
        fmt::format("{}: \"{}\" is not a size; expected bytes, such as 4096 or 4K", where, text));
  }
  return number * scale->second;
}

std::string bytes_text(std::int64_t bytes) {
  for (const auto& [unit, size] :
       {std::pair{"GiB", kibi * kibi * kibi}, {"MiB", kibi * kibi}, {"KiB", kibi}}) {
    if (bytes >= size)
      return fmt::format("{:g} {}", static_cast<double>(bytes) / static_cast<double>(size), unit);
  }
  return fmt::format("{} B", bytes);
}

std::vector<std::int64_t> message_sizes(std::int64_t low, std::int64_t high, std::int64_t factor) {
  if (low > high) {
    throw std::invalid_argument(
        fmt::format("--min-bytes {}: is above --max-bytes {}; give a smaller one", low, high));
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = low; size < high; size *= factor) sizes.push_back(size);
  sizes.push_back(high);
  return sizes;
}

std::string collective_row_name(const std::string& collective, const Config& config,
                                std::int64_t bytes) {
  const std::string shared = config.device_ids.empty()
                                 ? ""
                                 : fmt::format("/device_ids:{}", fmt::join(config.device_ids, "+"));
  return fmt::format("{}/{}/ranks:{}{}/bytes:{}", collective, config.backend, config.devices,
                     shared, bytes);
}

reports::Row collective_row(const std::string& collective, const Config& config,
                            std::int64_t bytes) {
  reports::Row row;
  row.name = collective_row_name(collective, config, bytes);
  row.strategy = collective;
  row.model = config.backend.name();
  row.workload = fmt::format("{}/batch:0/device:{}/collective:{}/bytes:{}", config.backend,
                             config.device, collective, bytes);
  row.mesh = fmt::format("data={}/pipeline=1/tensor=1", config.devices);
  row.config = {{"collective", collective},         {"bytes", bytes},
                {"device", config.device.name()},   {"devices", config.devices},
                {"backend", config.backend.name()}, {"interface", config.interface},
                {"repetitions", config.repetitions}};
  if (!config.device_ids.empty()) {
    row.config.emplace_back("device_ids", fmt::format("{}", fmt::join(config.device_ids, "+")));
  }
  return row;
}

reports::Repetition collective_repetition(const std::string& collective, int ranks, int index,
                                          const MessageTimes& message) {
  reports::Repetition repetition;
  repetition.index = index;
  const double seconds = reports::median(message.ms) / 1e3;
  const double algorithm = static_cast<double>(message.bytes) / seconds / 1e9;
  repetition.counters = {{"bytes", static_cast<double>(message.bytes)},
                         {"wire_bytes", static_cast<double>(message.wire_bytes)},
                         {"algorithm_gb_per_s", algorithm},
                         {"bus_gb_per_s", algorithm * bus_factor(collective, ranks)}};
  repetition.step_ms = message.ms;
  return repetition;
}

}  // namespace stratagem::bench
