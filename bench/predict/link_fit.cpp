#include "bench/predict/link_fit.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace stratagem::bench {

// Weighted least squares of ms = latency + bytes x slope with weights 1 / ms^2: a relative error
// counts the same at every size. Neither is negative: if one would be, only the other is fitted.
schedules::LinkModel fit_link(const std::vector<TransferTime>& times) {
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

MeasuredLink::MeasuredLink(const std::vector<LinkTime>& times) : times_(times) {
  std::vector<TransferTime> points;
  for (const LinkTime& measured : times) {
    points.push_back({static_cast<double>(measured.bytes), measured.ms});
  }
  line_ = fit_link(points);
}

schedules::Cost MeasuredLink::transfer(std::int64_t bytes) const {
  const auto distance = [bytes](const LinkTime& measured) {
    return std::abs(measured.bytes - bytes);
  };
  const LinkTime& nearest = *std::ranges::min_element(times_, {}, distance);
  schedules::Cost cost = line_.transfer_ms(static_cast<double>(bytes));
  cost.processor_share = std::clamp(nearest.processor_share, 0.0, 1.0);
  return cost;
}

std::vector<LinkTime> link_of_ring(std::vector<LinkTime> link_of_two, int ranks) {
  const schedules::LinkModel two = MeasuredLink(link_of_two).line();
  const double neighbours = ranks - 1;
  for (LinkTime& measured : link_of_two) {
    const double on_the_way = two.transfer_ms(static_cast<double>(measured.bytes)) - two.latency_ms;
    measured.ms = neighbours * two.latency_ms + 2 * neighbours / ranks * on_the_way;
  }
  return link_of_two;
}

}  // namespace stratagem::bench
