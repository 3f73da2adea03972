#include "bench/config/presets.h"

#include <stdexcept>

#include "models/registry/named_entries.h"

namespace stratagem::bench {
namespace {

// The main job on two cores: all strategies, and the curve over the split size.
Preset cpu_preset() {
  return {"cpu",
          "ResNet-50 on two CPU devices over four split sizes",
          {{"strategy", "single,model_parallel,pipeline"},
           {"model", "resnet50"},
           {"devices", "2"},
           {"global_batch_size", "24"},
           {"image_size", "128"},
           {"split_size", "2,4,6,12"},
           {"schedule", "1f1b"},
           {"steps", "2"}}};
}

// PyTorch's tutorial "Single-Machine Model Parallel Best Practices".
Preset tutorial_preset() {
  Preset preset{"tutorial",
                "ResNet-50 as the model-parallel tutorial measures it, on two devices",
                {{"strategy", "single,model_parallel,pipeline"},
                 {"model", "resnet50"},
                 {"devices", "2"},
                 {"global_batch_size", "120"},
                 {"image_size", "128"},
                 {"split_size", "1,3,5,8,10,12,20,40,60"},
                 {"protocol", "tutorial"}}};
  const OptionValues& implied = tutorial_protocol_values();
  preset.values.insert(preset.values.end(), implied.begin(), implied.end());
  return preset;
}

}  // namespace

const OptionValues& tutorial_protocol_values() {
  static const OptionValues values = {{"schedule", "gpipe"}, {"steps", "3"},
                                      {"repetitions", "10"}, {"loss", "mse"},
                                      {"optimizer", "sgd"},  {"learning_rate", "0.001"}};
  return values;
}

std::span<const Preset> presets() {
  static const std::vector<Preset> all = {cpu_preset(), tutorial_preset()};
  return all;
}

const Preset& find_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw std::invalid_argument("--preset: " + models::unknown_name("preset", name, names));
}

}  // namespace stratagem::bench
