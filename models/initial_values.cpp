#include "models/initial_values.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <array>
#include <random>
#include <vector>

namespace stratagem::models {
namespace {

/// Seeds a generator. The C++ standard defines every bit of a seed sequence, so all machines agree.
at::Generator generator_of(std::uint64_t seed, std::string_view name) {
  std::vector<std::uint32_t> words(name.begin(), name.end());
  words.push_back(static_cast<std::uint32_t>(seed));
  words.push_back(static_cast<std::uint32_t>(seed >> 32U));
  std::seed_seq sequence(words.begin(), words.end());
  std::array<std::uint32_t, 1> mixed{};  // LibTorch's generator on the CPU takes 32 bits
  sequence.generate(mixed.begin(), mixed.end());
  return at::detail::createCPUGenerator(mixed[0]);
}

}  // namespace

at::Tensor draw(const InitialValues& values, at::IntArrayRef sizes, std::uint64_t seed,
                std::string_view name) {
  const double parameter = values.parameter;
  switch (values.distribution) {
    case InitialValues::Distribution::normal:
      return at::empty(sizes).normal_(0, parameter, generator_of(seed, name));
    case InitialValues::Distribution::uniform:
      return at::empty(sizes).uniform_(-parameter, parameter, generator_of(seed, name));
    case InitialValues::Distribution::stored:
      return values.values.detach().clone();
    case InitialValues::Distribution::constant:
      break;
  }
  return at::full(sizes, parameter);
}

}  // namespace stratagem::models
