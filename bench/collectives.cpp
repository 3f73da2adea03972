#include "bench/collectives.h"

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

/// Each link's share of the algorithm bandwidth, from the number of ranks.
using Factor = double (*)(double ranks);

const std::map<std::string, Factor, std::less<>>& factors() {
  static const std::map<std::string, Factor, std::less<>> all = {
      {"all_reduce", [](double ranks) { return 2 * (ranks - 1) / ranks; }},
      {"reduce_scatter", [](double ranks) { return (ranks - 1) / ranks; }},
      {"all_gather", [](double ranks) { return (ranks - 1) / ranks; }},
      {"broadcast", [](double) { return 1.0; }},
      {"send", [](double) { return 1.0; }}};
  return all;
}

}  // namespace

const std::vector<std::string>& collective_names() {
  static const std::vector<std::string> names = {"all_reduce", "reduce_scatter", "all_gather",
                                                 "broadcast", "send"};
  return names;
}

double bus_factor(std::string_view collective, int ranks) {
  const auto found = factors().find(collective);
  if (found == factors().end()) {
    throw std::invalid_argument(fmt::format("--collectives: unknown \"{}\"; choices: {}",
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
        fmt::format("{}: \"{}\" is no size; expected bytes as 4096, 4K, 1M or 1G", where, text));
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
    throw std::invalid_argument(fmt::format("--min-bytes {} is above --max-bytes {}", low, high));
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = low; size < high; size *= factor) sizes.push_back(size);
  sizes.push_back(high);
  return sizes;
}

std::string collective_row_name(const std::string& collective, const Config& config,
                                std::int64_t bytes) {
  return fmt::format("{}/{}/ranks:{}/bytes:{}", collective, config.backend, config.devices, bytes);
}

reports::Row collective_row(const std::string& collective, const Config& config,
                            std::int64_t bytes) {
  reports::Row row;
  row.name = collective_row_name(collective, config, bytes);
  row.strategy = collective;
  row.model = config.backend;
  row.mesh = fmt::format("data={}/pipeline=1/tensor=1", config.devices);
  row.config = {{"collective", collective},         {"bytes", bytes},
                {"device", config.device},          {"devices", config.devices},
                {"backend", config.backend},        {"interface", config.interface},
                {"repetitions", config.repetitions}};
  return row;
}

reports::Repetition collective_repetition(const std::string& collective, int ranks,
                                          std::int64_t bytes, int index,
                                          std::vector<double> step_ms) {
  reports::Repetition repetition;
  repetition.index = index;
  const double seconds = reports::median(step_ms) / 1e3;
  const double algorithm = static_cast<double>(bytes) / seconds / 1e9;
  repetition.counters = {{"bytes", static_cast<double>(bytes)},
                         {"algorithm_gb_per_s", algorithm},
                         {"bus_gb_per_s", algorithm * bus_factor(collective, ranks)}};
  repetition.step_ms = std::move(step_ms);
  return repetition;
}

// Weighted least squares of ms = latency + bytes x slope with weights 1 / ms^2: a relative error
// counts the same at every size. Neither is negative: where the line would be, the other alone is
// fitted.
pipeline::LinkModel fit_link(const std::vector<TransferTime>& times) {
  double weights = 0;
  double bytes = 0;
  double squares = 0;
  double ms = 0;
  double products = 0;
  for (const TransferTime& time : times) {
    const double weight = 1 / (time.ms * time.ms);
    weights += weight;
    bytes += weight * time.bytes;
    squares += weight * time.bytes * time.bytes;
    ms += weight * time.ms;
    products += weight * time.bytes * time.ms;
  }
  const double determinant = weights * squares - bytes * bytes;
  if (times.size() < 2 || !(determinant > 0)) {
    throw std::invalid_argument("a link model needs the times of two message sizes or more");
  }
  const double slope = (weights * products - bytes * ms) / determinant;  // ms a byte
  const double latency = (squares * ms - bytes * products) / determinant;
  constexpr double gigabytes_per_byte_millisecond = 1e-6;
  if (slope <= 0) return {.latency_ms = ms / weights, .gigabytes_per_second = 0};
  if (latency < 0) {
    return {.latency_ms = 0,
            .gigabytes_per_second = gigabytes_per_byte_millisecond * squares / products};
  }
  return {.latency_ms = latency, .gigabytes_per_second = gigabytes_per_byte_millisecond / slope};
}

}  // namespace stratagem::bench
