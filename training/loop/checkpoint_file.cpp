#include "training/loop/checkpoint_file.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/core/CPUAllocator.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model.h"
#include "training/checkpoint/committed_file.h"
#include "training/checkpoint/pickle_reader.h"

namespace stratagem::training {
namespace {

using c10::IValue;
using checkpoint::PickledTensor;
using checkpoint::Value;

constexpr const char* format_name = "stratagem/checkpoint-1";
constexpr const char* pickle_record = "data.pkl";

/// Names of the model's tensors in the order of its layers, which is that of torch.optim's indices.
struct Names {
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;

  explicit Names(const models::Workload& workload) {
    const models::Model model = workload.make_model();
    for (const auto& each : models::parameters(model.layers)) parameters.push_back(each.name);
    for (const auto& each : models::buffers(model.layers)) buffers.push_back(each.name);
  }
};

/// What torch.optim calls an entry, and how we do: "exp_avg" is "optimizer.exp_avg.NAME".
std::vector<std::string> optimizer_entries(const models::OptimizerOptions& options) {
  if (options.kind == models::OptimizerOptions::Kind::sgd) {
    return options.momentum > 0 ? std::vector<std::string>{"momentum_buffer"}
                                : std::vector<std::string>{};
  }
  return {"exp_avg", "exp_avg_sq", "step"};
}

std::string own_name(const std::string& entry, const std::string& parameter) {
  return fmt::format("optimizer.{}.{}", entry, parameter);
}

using AnyDictionary = c10::impl::GenericDict;
AnyDictionary dictionary() { return AnyDictionary(c10::StringType::get(), c10::AnyType::get()); }
AnyDictionary numbered() { return AnyDictionary(c10::IntType::get(), c10::AnyType::get()); }

/// A tensor is pickled with its whole storage.
at::Tensor alone(const at::Tensor& tensor) {
  const bool whole = tensor.is_contiguous() && tensor.storage().nbytes() == tensor.nbytes();
  return whole ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

AnyDictionary model_state(const Names& names, const strategies::StateDictionary& state) {
  AnyDictionary all = dictionary();
  for (const auto* part : {&names.parameters, &names.buffers}) {
    for (const std::string& name : *part) all.insert(name, alone(state.at(name)));
  }
  return all;
}

/// The options of the one group, as torch.optim's own state_dict has them.
AnyDictionary group_of(const models::OptimizerOptions& options, std::size_t parameters) {
  AnyDictionary group = dictionary();
  group.insert("lr", options.learning_rate);
  group.insert("weight_decay", options.weight_decay);
  group.insert("maximize", false);
  group.insert("foreach", IValue());
  group.insert("differentiable", false);
  group.insert("fused", IValue());
  if (options.kind == models::OptimizerOptions::Kind::sgd) {
    group.insert("momentum", options.momentum);
    group.insert("dampening", 0);
    group.insert("nesterov", false);
  } else {
    group.insert("betas", c10::ivalue::Tuple::create(options.beta1, options.beta2));
    group.insert("eps", options.epsilon);
    group.insert("amsgrad", false);
    group.insert("capturable", false);
    group.insert("decoupled_weight_decay", options.kind == models::OptimizerOptions::Kind::adamw);
  }
  c10::impl::GenericList indices(c10::AnyType::get());
  for (std::size_t index = 0; index < parameters; ++index) {
    indices.push_back(static_cast<std::int64_t>(index));
  }
  group.insert("params", indices);
  return group;
}

AnyDictionary optimizer_state(const Names& names, const strategies::StateDictionary& state,
                              const models::OptimizerOptions& options) {
  AnyDictionary slots = numbered();
  for (std::size_t index = 0; index < names.parameters.size(); ++index) {
    AnyDictionary slot = dictionary();
    for (const std::string& entry : optimizer_entries(options)) {
      const auto found = state.find(own_name(entry, names.parameters[index]));
      if (found != state.end()) slot.insert(entry, alone(found->second));
    }
    if (slot.size() > 0) slots.insert(static_cast<std::int64_t>(index), slot);
  }
  c10::impl::GenericList groups(c10::AnyType::get());
  groups.push_back(group_of(options, names.parameters.size()));
  AnyDictionary all = dictionary();
  all.insert("state", slots);
  all.insert("param_groups", groups);
  return all;
}

AnyDictionary position_state(const Position& position) {
  AnyDictionary all = dictionary();
  all.insert("step", position.step);
  all.insert("samples", position.samples);
  all.insert("seconds", position.seconds);
  return all;
}

struct Element {
  const char* storage_type;
  at::ScalarType type;
};
constexpr std::array elements = {
    Element{"FloatStorage", at::kFloat}, Element{"DoubleStorage", at::kDouble},
    Element{"HalfStorage", at::kHalf},   Element{"BFloat16Storage", at::kBFloat16},
    Element{"LongStorage", at::kLong},   Element{"IntStorage", at::kInt},
    Element{"ShortStorage", at::kShort}, Element{"CharStorage", at::kChar},
    Element{"ByteStorage", at::kByte},   Element{"BoolStorage", at::kBool}};

class File {
 public:
  explicit File(const std::filesystem::path& path) : path_(path), archive_(opened(path)) {}

  Value pickle() {
    const auto [data, size] = record(pickle_record);
    return checkpoint::read_pickle({static_cast<const std::uint8_t*>(data.get()), size});
  }

  at::Tensor tensor(const PickledTensor& pickled) {
    const auto element =
        std::ranges::find(elements, std::string_view(pickled.storage_type), &Element::storage_type);
    if (element == elements.end()) fail(pickled.storage_type + " is not known");
    const auto [data, size] = record("data/" + pickled.storage);
    const auto wanted = static_cast<std::size_t>(pickled.elements) * at::elementSize(element->type);
    if (size != wanted) {
      fail(fmt::format("storage {} has {} bytes, expected {}", pickled.storage, size, wanted));
    }
    return at::from_blob(data.get(), {pickled.elements}, element->type)
        .as_strided(pickled.sizes, pickled.strides, pickled.offset)
        .clone(at::MemoryFormat::Contiguous);
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument(fmt::format("{}: {}", path_.string(), why));
  }

 private:
  static std::unique_ptr<caffe2::serialize::PyTorchStreamReader> opened(
      const std::filesystem::path& path) {
    try {
      return std::make_unique<caffe2::serialize::PyTorchStreamReader>(path.string());
    } catch (const std::exception&) {  // its text has many lines
      throw std::invalid_argument(fmt::format(
          "{}: is no archive that torch.save or a training has written whole", path.string()));
    }
  }

  std::pair<at::DataPtr, std::size_t> record(const std::string& name) {
    try {
      auto [data, size] = archive_->getRecord(name);
      return {std::move(data), size};
    } catch (const std::exception&) {
      fail("record " + name + " is missing or damaged");
    }
  }

  const std::filesystem::path& path_;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> archive_;
};

const Value& part(const File& file, const Value& whole, const char* name) {
  const Value* found = whole.find(name);
  if (found == nullptr) file.fail(fmt::format("has no \"{}\", as a checkpoint has", name));
  return *found;
}

template <class Kind>
const Kind& part_as(const File& file, const Value& whole, const char* name) {
  const Kind* found = part(file, whole, name).as<Kind>();
  if (found == nullptr) file.fail(fmt::format("\"{}\" is of another type", name));
  return *found;
}

/// Takes the model's tensors; each that the file lacks or has besides is another model's.
void take_model(File& file, const Value& whole, const Names& names,
                strategies::StateDictionary& state) {
  std::vector<std::string> wanted = names.parameters;
  wanted.insert(wanted.end(), names.buffers.begin(), names.buffers.end());
  for (const std::string& name : wanted) {
    const Value* found = whole.find(name);
    if (found == nullptr || found->as<PickledTensor>() == nullptr) {
      file.fail(fmt::format("is of another model: it has no tensor \"{}\"", name));
    }
    state[name] = file.tensor(*found->as<PickledTensor>());
  }
  const auto* all = whole.as<checkpoint::Dictionary>();
  if (all != nullptr && all->items.size() != wanted.size()) {
    file.fail(fmt::format("is of another model: {} tensors, expected {}", all->items.size(),
                          wanted.size()));
  }
}

void take_optimizer(File& file, const Value& whole, const Names& names,
                    const models::OptimizerOptions& options, strategies::StateDictionary& state) {
  const auto& slots = part_as<checkpoint::Dictionary>(file, whole, "state");
  for (const auto& [key, slot] : slots.items) {
    const auto* index = key.as<std::int64_t>();
    if (index == nullptr || *index < 0 ||
        *index >= static_cast<std::int64_t>(names.parameters.size())) {
      file.fail("its optimizer has the state of a parameter that the model lacks");
    }
    for (const std::string& entry : optimizer_entries(options)) {
      const Value* found = slot.find(entry);
      if (found == nullptr || found->as<PickledTensor>() == nullptr) {
        file.fail(fmt::format("is of another optimizer: it has no \"{}\"", entry));
      }
      state[own_name(entry, names.parameters[static_cast<std::size_t>(*index)])] =
          file.tensor(*found->as<PickledTensor>());
    }
  }
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                      const models::Workload& workload) {
  const Names names(workload);
  AnyDictionary all = dictionary();
  all.insert("format", std::string(format_name));
  all.insert("model", model_state(names, checkpoint.state));
  all.insert("optimizer", optimizer_state(names, checkpoint.state, workload.options().optimizer));
  all.insert("training", position_state(checkpoint.position));
  all.insert("work", checkpoint.work);

  std::string pickle;
  torch::jit::Pickler pickler(
      [&pickle](const char* bytes, std::size_t size) { pickle.append(bytes, size); }, nullptr,
      nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(all);
  pickler.stop();

  checkpoint::CommittedFile file(path);
  {
    // What its destructor writes goes into the file, too.
    caffe2::serialize::PyTorchStreamWriter writer([&file](const void* bytes, std::size_t size) {
      file.write(bytes, size);
      return size;
    });
    writer.writeRecord(pickle_record, pickle.data(), pickle.size());
    constexpr std::string_view little = "little";
    writer.writeRecord("byteorder", little.data(), little.size());
    std::size_t number = 0;
    for (const at::Tensor& tensor : pickler.tensorData()) {
      writer.writeRecord(fmt::format("data/{}", number++), tensor.storage().data(),
                         tensor.storage().nbytes());
    }
    writer.writeEndOfFile();
  }
  file.commit();
}

Checkpoint read_checkpoint(const std::filesystem::path& path, const models::Workload& workload) {
  File file(path);
  const Names names(workload);
  Checkpoint read;
  const Value whole = [&] {
    try {
      return file.pickle();
    } catch (const std::invalid_argument& error) {
      file.fail(error.what());
    }
  }();
  if (part_as<std::string>(file, whole, "format") != format_name) {
    file.fail(fmt::format("expected format \"{}\"", format_name));
  }
  take_model(file, part(file, whole, "model"), names, read.state);
  take_optimizer(file, part(file, whole, "optimizer"), names, workload.options().optimizer,
                 read.state);
  const Value& position = part(file, whole, "training");
  read.position = {.step = part_as<std::int64_t>(file, position, "step"),
                   .samples = part_as<std::int64_t>(file, position, "samples"),
                   .seconds = part_as<double>(file, position, "seconds")};
  read.work = part_as<std::string>(file, whole, "work");
  return read;
}

}  // namespace stratagem::training
