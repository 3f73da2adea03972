// Reads what write_checkpoint() and torch.save write.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "models/loss_scale.h"
#include "training/checkpoint/pickle_reader.h"
#include "training/loop/checkpoint_file.h"
#include "training/loop/checkpoint_names.h"

namespace stratagem::training {
namespace {

using checkpoint::PickledTensor;
using checkpoint::Value;

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
    try {
      return checkpoint::read_pickle({static_cast<const std::uint8_t*>(data.get()), size});
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
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
void take_model(File& file, const Value& whole, const CheckpointNames& names,
                strategies::StateDictionary& state) {
  std::vector<models::NamedTensor> wanted = names.parameters;
  wanted.insert(wanted.end(), names.buffers.begin(), names.buffers.end());
  for (const auto& [name, tensor] : wanted) {
    const Value* found = whole.find(name);
    const auto* pickled = found == nullptr ? nullptr : found->as<PickledTensor>();
    if (pickled == nullptr) {
      file.fail(fmt::format("is of another model: it has no tensor \"{}\"", name));
    }
    if (tensor.sizes() != at::IntArrayRef(pickled->sizes)) {
      file.fail(fmt::format("is of another model: its \"{}\" is [{}], expected [{}]", name,
                            fmt::join(pickled->sizes, ", "), fmt::join(tensor.sizes(), ", ")));
    }
    state[name] = file.tensor(*pickled);
  }
  const auto* all = whole.as<checkpoint::Dictionary>();
  if (all != nullptr && all->items.size() != wanted.size()) {
    file.fail(fmt::format("is of another model: {} tensors, expected {}", all->items.size(),
                          wanted.size()));
  }
}

void take_optimizer(File& file, const Value& whole, const CheckpointNames& names,
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
      state[own_name(entry, names.parameters[static_cast<std::size_t>(*index)].name)] =
          file.tensor(*found->as<PickledTensor>());
    }
  }
}

void take_scaler(const File& file, const Value& whole, strategies::StateDictionary& state) {
  using models::LossScale;
  const Value* scaler = whole.find("scaler");
  if (scaler == nullptr) return;  // of a training whose loss was not scaled dynamically
  state[LossScale::scale_name] =
      at::scalar_tensor(part_as<double>(file, *scaler, "scale"), at::kDouble);
  const auto count = [&](const char* name) {
    return at::scalar_tensor(part_as<std::int64_t>(file, *scaler, name), at::kLong);
  };
  state[LossScale::good_steps_name] = count(growth_tracker);
  state[LossScale::overflows_left_name] = count(hysteresis_tracker);
}

BestEvaluation best_in(const File& file, const Value& position) {
  const Value* best = position.find("best");
  if (best == nullptr) return {};  // there was no evaluation
  const auto count = [&](const char* name) {
    const auto number = part_as<std::int64_t>(file, *best, name);
    if (number < 0) file.fail(fmt::format("training.best.{} is {}, below 0", name, number));
    return number;
  };
  return {.monitor = part_as<std::string>(file, *best, "monitor"),
          .value = part_as<double>(file, *best, "value"),
          .step = count("step"),
          .last_step = count("last_step"),
          .without_improvement = count("without_improvement")};
}

}  // namespace

Checkpoint read_checkpoint(const std::filesystem::path& path, const models::Workload& workload) {
  File file(path);
  const CheckpointNames names(workload);
  Checkpoint read;
  const Value whole = file.pickle();
  if (part_as<std::string>(file, whole, "format") != checkpoint_format) {
    file.fail(fmt::format("expected format \"{}\"", checkpoint_format));
  }
  take_model(file, part(file, whole, "model"), names, read.state);
  take_optimizer(file, part(file, whole, "optimizer"), names, workload.options().optimizer,
                 read.state);
  take_scaler(file, whole, read.state);
  const Value& position = part(file, whole, "training");
  read.position = {.step = part_as<std::int64_t>(file, position, "step"),
                   .samples = part_as<std::int64_t>(file, position, "samples"),
                   .seconds = part_as<double>(file, position, "seconds"),
                   .skipped = position.find("skipped") == nullptr
                                  ? 0  // written before updates could be skipped
                                  : part_as<std::int64_t>(file, position, "skipped")};
  read.position.best = best_in(file, position);
  read.work = part_as<std::string>(file, whole, "work");
  return read;
}

strategies::StateDictionary read_model(const std::filesystem::path& path,
                                       const models::Workload& workload) {
  File file(path);
  const Value whole = file.pickle();
  const Value* model = whole.find("model");
  const bool is_part = model != nullptr && model->as<checkpoint::Dictionary>() != nullptr;
  strategies::StateDictionary state;
  take_model(file, is_part ? *model : whole, CheckpointNames(workload), state);
  return state;
}

}  // namespace stratagem::training
