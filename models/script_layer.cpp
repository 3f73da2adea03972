#include "models/script_layer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model.h"

namespace stratagem::models {
namespace {

using torch::jit::Module;
using Replacements = c10::IValue::HashIdentityIValueMap;

/// Returns the first line of an error, without LibTorch's backtrace.
std::string reason_of(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  const std::string_view text = own != nullptr ? own->what_without_backtrace() : error.what();
  // TorchScript's own errors end with what was thrown inside it.
  constexpr std::string_view inner = "RuntimeError: ";
  const auto found = text.rfind(inner);
  const std::string_view from = found == std::string_view::npos ? text : text.substr(found);
  return std::string(from.substr(0, from.find('\n')));
}

/// Returns a copy of a module in which each tensor of `replacements` is another one.
Module copy_of(const Module& module, Replacements replacements) {
  return Module(c10::IValue(module._ivalue()).deepcopy(replacements).toObject());
}

/// Without the optimizing executor a TorchScript function runs, and is differentiated, as eager
/// code.
at::Tensor call(const Module& module, const at::Tensor& input) {
  const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
  Module callee = module;  // a handle: operator() is not const
  const c10::IValue output = callee({input});
  if (!output.isTensor()) throw std::invalid_argument("it returns no tensor");
  return output.toTensor();
}

std::string class_of(const Module& module) { return module.type()->name()->name(); }

bool holds_class(const Module& module, std::string_view name) {
  for (const Module& each : module.modules()) {
    if (class_of(each).starts_with(name)) return true;
  }
  return false;
}

bool has_relu(const Module& module) {
  for (const Module& each : module.modules()) {
    if (class_of(each).starts_with("ReLU")) return true;
    const auto forward = each.find_method("forward");
    if (!forward) continue;
    for (const char* name : {"aten::relu", "aten::relu_"}) {
      if (forward->graph()->toString().find(name) != std::string::npos) return true;
    }
  }
  return false;
}

/// The floating-point operations of a forward pass: RecordFunction takes a plain function, which
/// reaches nothing but this.
thread_local double* counted_flops = nullptr;
thread_local double* counted_flops_of_activations = nullptr;

double numel_of(const c10::IValue& value) {
  return value.isTensor() ? static_cast<double>(value.toTensor().numel()) : 0;
}

/// Returns 2 x rows x inner x columns of a product whose operands stand at `first` and behind it.
double product(c10::ArrayRef<const c10::IValue> inputs, std::size_t first) {
  if (inputs.size() < first + 2 || !inputs[first].isTensor() || !inputs[first + 1].isTensor()) {
    return 0;
  }
  const at::Tensor& right = inputs[first + 1].toTensor();
  return 2 * numel_of(inputs[first]) * static_cast<double>(right.size(-1));
}

/// Returns 2 x weights x positions x samples of aten::convolution.
double convolution(c10::ArrayRef<const c10::IValue> inputs) {
  const at::Tensor& input = inputs[0].toTensor();
  const at::Tensor& weight = inputs[1].toTensor();
  const auto strides = inputs[3].toIntVector();
  const auto paddings = inputs[4].toIntVector();
  const auto dilations = inputs[5].toIntVector();
  double flops = 2 * numel_of(inputs[1]) * static_cast<double>(input.size(0));
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    const auto place = static_cast<std::int64_t>(axis) + 2;
    const std::int64_t kernel = dilations[axis] * (weight.size(place) - 1) + 1;
    flops *=
        static_cast<double>((input.size(place) + 2 * paddings[axis] - kernel) / strides[axis] + 1);
  }
  return flops;
}

std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
  if (counted_flops == nullptr) return nullptr;
  const std::string_view name = function.name();
  const auto inputs = function.inputs();
  if (name == "aten::mm") *counted_flops += product(inputs, 0);
  if (name == "aten::addmm") *counted_flops += product(inputs, 1);
  if (name == "aten::bmm") *counted_flops_of_activations += product(inputs, 0);
  if (name == "aten::baddbmm") *counted_flops_of_activations += product(inputs, 1);
  if (name == "aten::convolution") *counted_flops += convolution(inputs);
  return nullptr;
}

/// Counts the operations of one thread while it lives.
class FlopCount {
 public:
  FlopCount()
      : handle_(
            at::addThreadLocalCallback(at::RecordFunctionCallback(count).needsInputs(true).scopes(
                {at::RecordScope::FUNCTION}))) {
    counted_flops = &with_parameters_;
    counted_flops_of_activations = &between_activations_;
  }
  ~FlopCount() {
    at::removeCallback(handle_);
    counted_flops = counted_flops_of_activations = nullptr;
  }
  FlopCount(const FlopCount&) = delete;
  FlopCount& operator=(const FlopCount&) = delete;

  LayerFlops flops() const {
    return {with_parameters_ + between_activations_, with_parameters_ + 2 * between_activations_,
            with_parameters_};
  }

 private:
  double with_parameters_ = 0;
  double between_activations_ = 0;
  at::CallbackHandle handle_;
};

}  // namespace

/// LibTorch has no convolution on the meta device in C++, so sizes come from a forward pass of one
/// sample through the module of the file, which is in evaluation mode.
class ScriptLayer::Source {
 public:
  /// The results of one sample of a shape.
  struct Sizes {
    Shape output;
    LayerFlops flops;
  };

  Source(std::string name, Module module, at::ScalarType input)
      : name_(std::move(name)),
        module_(std::move(module)),
        input_(input),
        rectifies_(has_relu(module_)) {}

  const std::string& name() const { return name_; }
  const Module& module() const { return module_; }
  bool rectifies() const { return rectifies_; }

  /// Throws what the module throws, or std::invalid_argument.
  Sizes sizes(Shape sample) const {
    sample.at(0) = 1;
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(sample); found != known_.end()) return found->second;
    const c10::AutoGradMode no_gradient(false);
    const FlopCount count;
    const at::Tensor output = call(module_, at::zeros(sample, input_));
    if (output.dim() == 0 || output.size(0) != 1) {
      throw std::invalid_argument("the first dimension of its output is not the batch");
    }
    return known_.emplace(sample, Sizes{output.sizes().vec(), count.flops()}).first->second;
  }

 private:
  std::string name_;
  Module module_;
  at::ScalarType input_;
  bool rectifies_;
  mutable std::mutex mutex_;
  mutable std::map<Shape, Sizes> known_;
};

struct ScriptLayer::Script {
  std::shared_ptr<const Source> source;
  Module module;  // on the layer's tensors
};

ScriptLayer::ScriptLayer(const std::shared_ptr<const Source>& source) : Layer(source->name()) {
  Replacements own;
  std::set<const void*> seen;  // a submodule may use a tensor under two names
  for (const auto& [name, value] : source->module().named_parameters()) {
    if (!seen.insert(value.unsafeGetTensorImpl()).second) continue;
    if (!value.requires_grad()) {
      throw std::invalid_argument(
          fmt::format("parameter {}.{} is frozen; export a model whose parameters all require a "
                      "gradient",
                      this->name(), name));
    }
    own.emplace(value, register_parameter(name, value.sizes().vec(), InitialValues::stored(value)));
  }
  for (const auto& [name, value] : source->module().named_buffers()) {
    if (!seen.insert(value.unsafeGetTensorImpl()).second) continue;
    own.emplace(value, register_buffer(name, value.sizes().vec(), InitialValues::stored(value),
                                       value.scalar_type()));
  }
  script_ = std::make_unique<Script>(Script{source, copy_of(source->module(), std::move(own))});
  set_training(true);
}

ScriptLayer::~ScriptLayer() = default;

at::Tensor ScriptLayer::forward(const at::Tensor& input) { return call(script_->module, input); }

Shape ScriptLayer::output_shape(const Shape& input) const {
  try {
    Shape output = script_->source->sizes(input).output;
    output[0] = input.at(0);
    return output;
  } catch (const std::exception& error) {
    throw std::invalid_argument(
        fmt::format("layer {} cannot take {}: {}", name(), to_string(input), reason_of(error)));
  }
}

LayerFlops ScriptLayer::flops(const Shape& input) const {
  output_shape(input);
  const LayerFlops one = script_->source->sizes(input).flops;
  const auto samples = static_cast<double>(input[0]);
  return {samples * one.forward, samples * one.backward_input, samples * one.backward_weight};
}

void ScriptLayer::set_training(bool training) {
  Layer::set_training(training);
  script_->module.train(training);
}

bool ScriptLayer::rectifies() const { return script_->source->rectifies(); }

namespace {

using Sources = std::vector<std::shared_ptr<const ScriptLayer::Source>>;

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
    refuse(file, fmt::format("it is not a TorchScript file: {}", reason_of(error)));
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
    sources.push_back(std::make_shared<const ScriptLayer::Source>(
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

void refuse_dropout(const ScriptFile& script) {
  for (const auto& [name, each] : script.module.named_modules()) {
    if (!class_of(each).starts_with("Dropout") || !each.hasattr("p")) continue;
    if (each.attr("p").toDouble() == 0) continue;
    refuse(script.name,
           fmt::format("{} drops values at random, so strategies would differ; export it with p=0",
                       name));
  }
}

Shape sample_shape(const ModelEntry& entry) {
  if (entry.has_tokens()) return {1, entry.longest_sequence};
  if (!entry.has_images()) return {1, entry.features};
  return {1, entry.features, entry.default_image_size, entry.default_image_size};
}

/// Compares the module's forward() with its children in order, in evaluation mode.
void require_chain(const ScriptFile& script, const Sources& sources, const ModelEntry& entry) {
  const c10::AutoGradMode no_gradient(false);
  const Shape shape = sample_shape(entry);
  at::Tensor input = at::empty(shape).normal_().to(script.format);
  if (entry.has_tokens()) input = at::zeros(shape, at::kLong).random_(0, entry.classes);
  try {
    const at::Tensor whole = call(script.module, input);
    at::Tensor chained = input;
    for (const auto& source : sources) chained = call(source->module(), chained);
    const std::int64_t outputs = whole.dim() == 0 ? 0 : whole.size(-1);
    if (outputs != entry.classes) {
      refuse(script.name,
             fmt::format("it returns {} outputs, but {} has {}", outputs, metadata, entry.classes));
    }
    if (whole.equal(chained)) return;
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& error) {
    refuse(script.name,
           fmt::format("its children cannot be called one after the other: {}", reason_of(error)));
  }
  refuse(script.name,
         "its forward() is not its children in order; make the model a torch.nn.Sequential");
}

}  // namespace

ModelEntry read_script_model(const std::string& file) {
  const ScriptFile script = read(file);
  ModelEntry entry;
  entry.name = "script:" + file;
  entry.summary = "a TorchScript module";
  entry.fixed_size = true;
  set_input(entry, script);
  refuse_dropout(script);
  Sources sources;
  add_children(sources, script.module, "", script);
  if (sources.empty()) {
    refuse(file, "it has no children to cut between; make the model a torch.nn.Sequential");
  }
  refuse_shared_tensors(sources, script);
  require_chain(script, sources, entry);
  entry.has_batch_norm = holds_class(script.module, "BatchNorm");
  entry.layers = std::ssize(sources);
  entry.make = [sources, name = entry.name](const ModelOptions& /*options*/) {
    Model model{name, {}};
    for (const auto& source : sources)
      model.layers.push_back(std::make_unique<ScriptLayer>(source));
    return model;
  };
  try {
    entry.make({});
  } catch (const std::invalid_argument& error) {
    refuse(file, error.what());
  }
  return entry;
}

}  // namespace stratagem::models
