// `--model script:FILE`: a TorchScript module.
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model.h"
#include "models/registry/registry.h"
#include "models/script_layer.h"
#include "models/script_source.h"

namespace stratagem::models {
namespace {

using torch::jit::Module;
using Sources = std::vector<std::shared_ptr<const ScriptSource>>;

std::string class_of(const Module& module) { return module.type()->name()->name(); }

bool holds_class(const Module& module, std::string_view name) {
  for (const Module& each : module.modules()) {
    if (class_of(each).starts_with(name)) return true;
  }
  return false;
}

/// The file as it was read.
struct ScriptFile {
  std::string name;
  Module module;
  nlohmann::json facts;
  at::ScalarType format = at::kFloat;  // of its parameters
};

[[noreturn]] void refuse(const std::string& file, const std::string& reason) {
  throw std::invalid_argument(fmt::format("--model script:{}: {}", file, reason));
}

constexpr const char* metadata = "stratagem.json";
constexpr const char* remedy = "write the file with tools/python/export_model.py";

ScriptFile read(const std::string& file) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(file, missing)) refuse(file, "there is no such file");
  torch::jit::ExtraFilesMap extra{{metadata, ""}};
  try {
    Module module = torch::jit::load(file, at::kCPU, extra, /*load_debug_files=*/false);
    if (extra[metadata].empty()) refuse(file, fmt::format("it has no {}; {}", metadata, remedy));
    module.eval();
    at::ScalarType format = at::kFloat;
    for (const at::Tensor& parameter : module.parameters()) format = parameter.scalar_type();
    return {file, std::move(module), nlohmann::json::parse(extra[metadata]), format};
  } catch (const nlohmann::json::exception& error) {
    refuse(file, fmt::format("{}: {}; {}", metadata, reason_of(error), remedy));
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& error) {
    // LibTorch appends advice about checkpoints.
    const std::string reason = reason_of(error);
    refuse(file, fmt::format("it is not a TorchScript file: {}; {}",
                             reason.substr(0, reason.find(". ")), remedy));
  }
}

std::int64_t count_in(const ScriptFile& script, const char* key) {
  const auto found = script.facts.find(key);
  if (found != script.facts.end() && found->is_number_integer() && *found > 0) {
    return found->get<std::int64_t>();
  }
  refuse(script.name, fmt::format("{} has no positive \"{}\"; {}", metadata, key, remedy));
}

/// Sets the kind of the input and its sizes.
void set_input(ModelEntry& entry, const ScriptFile& script) {
  entry.classes = count_in(script, "outputs");
  if (script.facts.contains("sequence_length")) {
    entry.input_kind = InputKind::tokens;
    entry.longest_sequence = count_in(script, "sequence_length");
    return;
  }
  const auto shape = script.facts.value("sample_shape", nlohmann::json());
  const bool is_list = shape.is_array() && std::ranges::all_of(shape, [](const auto& size) {
                         return size.is_number_integer() && size > 0;
                       });
  const bool is_image = is_list && shape.size() == 3 && shape[1] == shape[2];
  if (!is_image && !(is_list && shape.size() == 1)) {
    refuse(script.name,
           fmt::format("\"sample_shape\" is {}; expected [channels, side, side] or [features]",
                       shape.dump()));
  }
  entry.input_kind = is_image ? InputKind::image : InputKind::vector;
  entry.features = shape[0].get<std::int64_t>();
  if (is_image) entry.default_image_size = entry.smallest_image = shape[1].get<std::int64_t>();
}

/// Adds the children of a module; a Sequential stands for its own children.
void add_children(Sources& sources, const Module& module, const std::string& prefix,
                  const ScriptFile& script) {
  for (const auto& [name, child] : module.named_children()) {
    const std::string full = prefix + name;
    if (class_of(child).starts_with("Sequential")) {
      add_children(sources, child, full + ".", script);
      continue;
    }
    if (!child.find_method("forward") || child.get_method("forward").num_inputs() != 2) {
      refuse(script.name, fmt::format("child {} cannot be called with one tensor; make the model a "
                                      "torch.nn.Sequential of modules that take one tensor",
                                      full));
    }
    const bool takes_tokens = sources.empty() && script.facts.contains("sequence_length");
    sources.push_back(std::make_shared<const ScriptSource>(
        full, child, takes_tokens ? at::kLong : script.format));
  }
}

void refuse_shared_tensors(const Sources& sources, const ScriptFile& script) {
  std::set<const void*> seen;
  for (const auto& source : sources) {
    std::set<const void*> own;
    for (const auto& [name, value] : source->module().named_parameters()) {
      own.insert(value.unsafeGetTensorImpl());
      if (!seen.contains(value.unsafeGetTensorImpl())) continue;
      refuse(script.name, fmt::format("{}.{} is shared with another child; export a model without "
                                      "tied parameters",
                                      source->name(), name));
    }
    seen.insert(own.begin(), own.end());
  }
}

/// Returns random inputs of so many samples.
at::Tensor inputs_of(const ModelEntry& entry, std::int64_t samples, at::ScalarType format) {
  if (entry.has_tokens()) {
    return at::zeros({samples, entry.longest_sequence}, at::kLong).random_(0, entry.classes);
  }
  Shape shape = {samples, entry.features};
  if (entry.has_images()) shape.insert(shape.end(), 2, entry.default_image_size);
  return at::zeros(shape).normal_().to(format);
}

/// Compares the module's forward() with its children in order, in evaluation mode.
void require_chain(const ScriptFile& script, const Sources& sources, const ModelEntry& entry) {
  const at::Tensor input = inputs_of(entry, 1, script.format);
  const at::Tensor whole = call(script.module, input);
  at::Tensor chained = input;
  for (const auto& source : sources) chained = call(source->module(), chained);
  const std::int64_t outputs = whole.dim() == 0 ? 0 : whole.size(-1);
  if (outputs != entry.classes) {
    refuse(script.name,
           fmt::format("it returns {} outputs, but {} has {}", outputs, metadata, entry.classes));
  }
  if (whole.equal(chained)) return;
  refuse(script.name,
         "its forward() is not its children in order; make the model a torch.nn.Sequential");
}

/// Compares two training passes of a copy, whose running statistics may change.
void require_no_randomness(const ScriptFile& script, const ModelEntry& entry) {
  Module copy = script.module.deepcopy();
  copy.train();
  constexpr std::int64_t samples = 2;  // one value is too few for a BatchNorm
  const at::Tensor input = inputs_of(entry, samples, script.format);
  if (call(copy, input).equal(call(copy, input))) return;
  refuse(script.name,
         "its training pass is random, as with dropout, so strategies would differ; export it "
         "with p=0");
}

/// Reads a TorchScript file with the metadata that tools/python/export_model.py adds. The layers
/// are the module's children, in the order of their definition; a Sequential child is replaced by
/// its own children.
///
/// Throws std::invalid_argument, in one line: a file that is not TorchScript, no metadata, no
/// children, a child that is not callable with one tensor, tensors that two children share, a
/// random training pass, or a forward() that is not its children in order.
ModelEntry read_script_model(const std::string& file) {
  const ScriptFile script = read(file);
  ModelEntry entry;
  entry.name = "script:" + file;
  entry.summary = "a TorchScript module";
  entry.fixed_size = true;
  set_input(entry, script);
  Sources sources;
  add_children(sources, script.module, "", script);
  if (sources.empty()) {
    refuse(file, "it has no children to cut between; make the model a torch.nn.Sequential");
  }
  refuse_shared_tensors(sources, script);
  try {
    const c10::AutoGradMode no_gradient(false);
    require_chain(script, sources, entry);
    require_no_randomness(script, entry);
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& error) {
    refuse(file,
           fmt::format("its children cannot be called one after the other: {}", reason_of(error)));
  }
  entry.has_batch_norm = holds_class(script.module, "BatchNorm");
  entry.layers = std::ssize(sources);
  entry.make = [sources, name = entry.name](const ModelOptions& /*options*/) {
    Model model{name, {}};
    for (const auto& each : sources) model.layers.push_back(std::make_unique<ScriptLayer>(each));
    return model;
  };
  try {
    entry.make({});
  } catch (const std::invalid_argument& error) {
    refuse(file, error.what());
  }
  return entry;
}

STRATAGEM_REGISTER(ModelFormat{
    .name = "script",
    .summary = "a TorchScript file that tools/python/export_model.py wrote",
    .load = read_script_model});

}  // namespace
}  // namespace stratagem::models
