#include "strategies/stages/partition.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "strategies/backends/backend.h"
#include "strategies/stages/balance.h"

namespace stratagem::stages {
namespace {

std::vector<std::string> names_at(const models::LayerList& layers,
                                  const std::vector<std::size_t>& boundaries) {
  std::vector<std::string> names;
  for (const std::size_t boundary : boundaries) names.push_back(layers[boundary]->name());
  return names;
}

std::vector<double> flops_of_layers(const models::Workload& workload,
                                    const models::LayerList& layers) {
  std::vector<double> costs;
  models::Shape shape = workload.input_shape(1);
  for (const auto& layer : layers) {
    const models::LayerSpan one(&layer, 1);
    costs.push_back(models::flops(one, shape, layer != layers.front()).total());
    shape = layer->output_shape(shape);
  }
  return costs;
}

constexpr int measured_repeats = 3;

/// Returns the seconds of one layer's forward and backward: the fastest of a few, after a warm-up.
double time_layer(models::Layer& layer, const at::Tensor& input, bool first) {
  using Clock = std::chrono::steady_clock;
  double fastest = 0;
  for (int repeat = 0; repeat <= measured_repeats; ++repeat) {
    const at::Tensor leaf = input.detach().requires_grad_(!first);
    const auto start = Clock::now();
    const at::Tensor output = layer.forward(leaf);
    if (output.requires_grad()) output.backward(at::ones_like(output));
    if (output.is_cuda()) output.sum().item();  // waits for the device
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (repeat == 1 || (repeat > 1 && seconds < fastest)) fastest = seconds;
  }
  return fastest;
}

std::size_t layer_to_cut_before(const models::LayerList& layers, const std::string& name) {
  try {
    return models::find_layer(layers, name);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("--cut: ") + error.what());
  }
}

}  // namespace

std::vector<std::size_t> boundaries_of(const models::LayerList& layers,
                                       const std::vector<std::string>& cut) {
  std::vector<std::size_t> boundaries;
  for (const std::string& name : cut) {
    const std::size_t index = layer_to_cut_before(layers, name);
    const std::size_t previous = boundaries.empty() ? 0 : boundaries.back();
    if (index <= previous) {
      throw std::invalid_argument(fmt::format(
          "--cut: \"{}\" leaves a stage without layers; name layers in the model's order, not the "
          "first one",
          name));
    }
    boundaries.push_back(index);
  }
  return boundaries;
}

std::vector<std::string> choose_cut(const models::Workload& workload, int stages,
                                    strategies::Partition rule) {
  if (stages == 1) return {};
  const models::Model model = workload.make_meta_model();
  const bool two = stages == 2 && !workload.entry().default_cut.empty();
  if (rule == "tutorial" || (rule == "auto" && two)) {
    if (!two) {
      throw std::invalid_argument(
          stages == 2 ? fmt::format("--partition tutorial: {} has no default cut; use flops or "
                                    "balanced",
                                    workload.entry().name)
                      : fmt::format("--partition tutorial: it cuts into two stages, not {}; use "
                                    "flops or balanced",
                                    stages));
    }
    return workload.entry().default_cut;
  }
  return names_at(model.layers, balance(flops_of_layers(workload, model.layers), stages));
}

double parameter_bytes(const models::Layer& layer) {
  double bytes = 0;
  for (const auto& entry : layer.parameters()) bytes += static_cast<double>(entry.tensor.nbytes());
  return bytes;
}

std::vector<std::size_t> bucket_boundaries(models::LayerSpan layers, double bucket_bytes,
                                           double first_bytes) {
  std::vector<std::size_t> boundaries;
  double cap = std::min(first_bytes, bucket_bytes);
  double filled = 0;
  std::size_t begin = layers.size();  // the bucket's first layer with parameters
  for (std::size_t index = layers.size(); index-- > 0;) {
    const double bytes = parameter_bytes(*layers[index]);
    if (bytes == 0) continue;
    if (filled > 0 && filled + bytes > cap) {
      boundaries.push_back(begin);
      filled = 0;
      cap = bucket_bytes;
    }
    filled += bytes;
    begin = index;
  }
  std::ranges::reverse(boundaries);
  return boundaries;
}

std::vector<std::string> balanced_cut(const models::Workload& workload, int stages,
                                      std::int64_t samples, runtime::Device& device,
                                      std::chrono::milliseconds limit) {
  if (stages == 1) return {};
  std::vector<double> costs;
  device.enqueue(runtime::Stream::compute, "balance", [&] {
    const models::Batch batch = workload.make_batch(0).slice(0, samples);
    const models::SamplePlaceGuard place(workload.place_of(batch, 0));
    at::Tensor input = backends::copy_to(batch.inputs, device.description());
    models::Model model = workload.make_meta_model();
    for (auto& layer : model.layers) {
      const auto only = std::move(layer);  // memory suffices for one layer at a time
      workload.materialise(*only, backends::torch_device(device.description()));
      costs.push_back(time_layer(*only, input, /*first=*/costs.empty()));
      input = only->forward(input.detach()).detach();
    }
  });
  device.synchronize(limit);
  return names_at(workload.make_meta_model().layers, balance(costs, stages));
}

}  // namespace stratagem::stages
