#include "models/cpu_kernels/parallel_batch_norm.h"

#include <utility>

#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/parallel_rows.h"

namespace stratagem::models {
namespace {

template <typename T>
std::vector<T> scratch(const ChannelRows& rows) {
  return std::vector<T>(static_cast<std::size_t>(3 * rows.channels));
}

// Returns each part's result of sum(own, first row, number of rows).
template <class Sum>
std::vector<ChannelSums> sums_of_parts(const ChannelRows& rows, const Sum& sum) {
  const std::int64_t count = parallel_parts(rows.count, rows.channels);
  std::vector<ChannelSums> parts(static_cast<std::size_t>(count), ChannelSums(rows.channels));
  for_each_part(count, rows.count, [&](std::int64_t part, std::int64_t first, std::int64_t own) {
    ChannelSums& sums = parts[static_cast<std::size_t>(part)];
    sums.rows = own;
    sum(sums, first, own);
  });
  return parts;
}

// Combines two parts (Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm for
// computing sample variances", equation 2.1).
void take_in_moments(ChannelSums& all, const ChannelSums& part) {
  const auto share = static_cast<double>(part.rows) / static_cast<double>(all.rows + part.rows);
  const double weight = static_cast<double>(all.rows) * share;
  for (std::size_t c = 0; c < all.first.size(); ++c) {
    const double delta = part.first[c] - all.first[c];
    all.first[c] += delta * share;
    all.second[c] += part.second[c] + delta * delta * weight;
  }
  all.rows += part.rows;
}

void add(ChannelSums& all, const ChannelSums& part) {
  for (std::size_t c = 0; c < all.first.size(); ++c) {
    all.first[c] += part.first[c];
    all.second[c] += part.second[c];
  }
  all.rows += part.rows;
}

ChannelSums together(std::vector<ChannelSums> parts,
                     void (*take_in)(ChannelSums&, const ChannelSums&)) {
  for (std::size_t part = 1; part < parts.size(); ++part) take_in(parts[0], parts[part]);
  return std::move(parts[0]);
}

// Calls work(first value, number of rows) for each part.
template <class Work>
void for_each_part_of(const ChannelRows& rows, const Work& work) {
  for_each_part(parallel_parts(rows.count, rows.channels), rows.count,
                [&](std::int64_t /*part*/, std::int64_t first, std::int64_t count) {
                  work(first * rows.channels, count);
                });
}

}  // namespace

template <typename T>
ChannelSums parallel_moments(const T* x, const ChannelRows& rows) {
  auto parts = sums_of_parts(rows, [&](ChannelSums& sums, std::int64_t first, std::int64_t count) {
    kernels::best_kernels<kernels::BatchNormKernels<T>>().moments(
        x + first * rows.channels, count, rows.channels, scratch<T>(rows).data(),
        {sums.first.data(), sums.second.data()});
  });
  return together(std::move(parts), take_in_moments);
}

template <typename T>
void parallel_normalise(const kernels::Normalisation<T>& work, const ChannelRows& rows) {
  for_each_part_of(rows, [&](std::int64_t offset, std::int64_t count) {
    kernels::Normalisation<T> own = work;
    own.x += offset;
    own.y += offset;
    if (own.addend != nullptr) own.addend += offset;
    kernels::best_kernels<kernels::BatchNormKernels<T>>().normalise(own, count, rows.channels);
  });
}

template <typename T>
ChannelSums parallel_gradient_sums(const kernels::GradientSums<T>& work, const ChannelRows& rows) {
  auto parts = sums_of_parts(rows, [&](ChannelSums& sums, std::int64_t first, std::int64_t count) {
    const std::int64_t offset = first * rows.channels;
    kernels::GradientSums<T> own = work;
    own.gradient += offset;
    own.x += offset;
    if (own.output != nullptr) own.output += offset;
    if (own.passed != nullptr) own.passed += offset;
    own.sums = sums.first.data();
    own.products = sums.second.data();
    kernels::best_kernels<kernels::BatchNormKernels<T>>().gradient_sums(own, count, rows.channels,
                                                                        scratch<T>(rows).data());
  });
  return together(std::move(parts), add);
}

template <typename T>
void parallel_input_gradient(const kernels::InputGradient<T>& work, const ChannelRows& rows) {
  for_each_part_of(rows, [&](std::int64_t offset, std::int64_t count) {
    kernels::InputGradient<T> own = work;
    own.gradient += offset;
    own.x += offset;
    own.result += offset;
    kernels::best_kernels<kernels::BatchNormKernels<T>>().input_gradient(own, count, rows.channels);
  });
}

template ChannelSums parallel_moments(const float* x, const ChannelRows& rows);
template ChannelSums parallel_moments(const double* x, const ChannelRows& rows);
template void parallel_normalise(const kernels::Normalisation<float>& work,
                                 const ChannelRows& rows);
template void parallel_normalise(const kernels::Normalisation<double>& work,
                                 const ChannelRows& rows);
template ChannelSums parallel_gradient_sums(const kernels::GradientSums<float>& work,
                                            const ChannelRows& rows);
template ChannelSums parallel_gradient_sums(const kernels::GradientSums<double>& work,
                                            const ChannelRows& rows);
template void parallel_input_gradient(const kernels::InputGradient<float>& work,
                                      const ChannelRows& rows);
template void parallel_input_gradient(const kernels::InputGradient<double>& work,
                                      const ChannelRows& rows);

}  // namespace stratagem::models
