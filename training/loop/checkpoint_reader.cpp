// Reads the files of write_checkpoint() and torch.save.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "models/datasets/mapped_file.h"
#include "models/loss_scale.h"
#include "training/checkpoint/folder.h"
#include "training/checkpoint/model_part.h"
#include "training/checkpoint/saved_file.h"
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

/// Returns whether the elements lie contiguously in order.
bool is_contiguous(const PickledTensor& tensor) {
  std::int64_t stride = 1;
  for (std::size_t index = tensor.sizes.size(); index-- > 0;) {
    if (tensor.sizes[index] != 1 && tensor.strides[index] != stride) return false;
    stride *= tensor.sizes[index];
  }
  return true;
}

class File {
 public:
  /// `most`: the most bytes of a storage once it is inflated.
  File(const std::filesystem::path& path, std::size_t most)
      : path_(path),
        most_(most),
        mapped_(std::make_shared<datasets::MappedFile>(path, "")),
        saved_(opened()) {}

  const Value& value() const { return saved_.value(); }

  /// Returns a tensor after comparing its sizes with `sizes`: a view of the file if its bytes lie
  /// there as they are, so that ranks that read the same file need no memory for it, else a copy.
  at::Tensor tensor(const PickledTensor& pickled, at::IntArrayRef sizes, const std::string& name) {
    if (sizes != at::IntArrayRef(pickled.sizes)) {
      fail(fmt::format("is of another model: its \"{}\" is [{}], expected [{}]", name,
                       fmt::join(pickled.sizes, ", "), fmt::join(sizes, ", ")));
    }
    const auto element =
        std::ranges::find(elements, std::string_view(pickled.storage_type), &Element::storage_type);
    if (element == elements.end()) {
      fail(fmt::format("its \"{}\" is of {}, an unsupported type", name, pickled.storage_type));
    }
    const std::span<const std::uint8_t> storage = storage_of(pickled);
    const bool as_it_lies = is_contiguous(pickled);
    const std::uint8_t* const first =
        storage.data() + static_cast<std::size_t>(pickled.offset) * c10::elementSize(element->type);
    if (as_it_lies && is_in_file(first, c10::elementSize(element->type))) {
      return view_of_file(first, sizes, element->type);
    }
    at::Tensor copy =
        at::empty(as_it_lies ? sizes : at::IntArrayRef(pickled.elements), at::dtype(element->type));
    if (as_it_lies && copy.numel() > 0) std::memcpy(copy.data_ptr(), first, copy.nbytes());
    if (as_it_lies) return copy;
    if (copy.numel() > 0) std::memcpy(copy.data_ptr(), storage.data(), storage.size());
    return copy.as_strided(pickled.sizes, pickled.strides, pickled.offset)
        .clone(at::MemoryFormat::Contiguous);
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument(fmt::format("{}: {}", path_.string(), why));
  }

 private:
  checkpoint::SavedFile opened() const {
    try {
      return checkpoint::SavedFile(mapped_->bytes());
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
  }
  std::span<const std::uint8_t> storage_of(const PickledTensor& pickled) {
    try {
      return saved_.storage(pickled, most_);
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
  }

  /// Returns whether elements of this size lie aligned in the file, not in inflated memory.
  bool is_in_file(const std::uint8_t* first, std::size_t element_size) const {
    const std::span<const std::uint8_t> bytes = mapped_->bytes();
    return first >= bytes.data() && first < bytes.data() + bytes.size() &&
           reinterpret_cast<std::uintptr_t>(first) % element_size == 0;
  }
  /// The pages stay mapped as long as the tensor, which nobody may write to.
  at::Tensor view_of_file(const std::uint8_t* first, at::IntArrayRef sizes,
                          at::ScalarType type) const {
    const auto keep = [mapped = mapped_](void*) {};
    return at::from_blob(const_cast<std::uint8_t*>(first), sizes, keep, at::dtype(type));
  }

  const std::filesystem::path& path_;
  std::size_t most_;
  std::shared_ptr<const datasets::MappedFile> mapped_;
  checkpoint::SavedFile saved_;
};

const Value& part(const File& file, const Value& whole, const char* name) {
  const Value* found = whole.find(name);
  if (found == nullptr) file.fail(fmt::format("is not a checkpoint: it has no \"{}\"", name));
  return *found;
}

template <class Kind>
const Kind& part_as(const File& file, const Value& whole, const char* name) {
  const Kind* found = part(file, whole, name).as<Kind>();
  if (found == nullptr) file.fail(fmt::format("\"{}\" has the wrong type", name));
  return *found;
}

/// Takes the model's tensors. A missing or extra tensor means another model.
void take_model(File& file, const Value& whole, const CheckpointNames& names,
                strategies::StateDictionary& state) {
  std::vector<models::NamedTensor> wanted = names.parameters;
  wanted.insert(wanted.end(), names.buffers.begin(), names.buffers.end());
  std::vector<std::string> wanted_names;
  for (const auto& each : wanted) wanted_names.push_back(each.name);
  checkpoint::TensorsByName found;
  try {
    found = checkpoint::model_tensors(whole, wanted_names);
  } catch (const std::invalid_argument& error) {
    file.fail(error.what());
  }
  for (const auto& [name, tensor] : wanted) {
    const auto pickled = found.find(name);
    state[name] = pickled == found.end() ? at::zeros(tensor.sizes(), tensor.scalar_type())
                                         : file.tensor(*pickled->second, tensor.sizes(), name);
  }
}

/// Takes the state of every parameter; before the first update there is none.
void take_optimizer(File& file, const Value& whole, const CheckpointNames& names,
                    const models::OptimizerOptions& options, bool is_updated,
                    strategies::StateDictionary& state) {
  const auto& slots = part_as<checkpoint::Dictionary>(file, whole, "state");
  std::map<std::int64_t, const Value*> slot_of;
  for (const auto& [key, slot] : slots.items) {
    const auto* index = key.as<std::int64_t>();
    if (index == nullptr || *index < 0 || *index >= std::ssize(names.parameters)) {
      file.fail("its optimizer has the state of a parameter that the model lacks");
    }
    slot_of.insert_or_assign(*index, &slot);
  }
  if (slot_of.empty() && !is_updated) return;
  for (std::int64_t index = 0; index < std::ssize(names.parameters); ++index) {
    const auto& [name, parameter] = names.parameters[static_cast<std::size_t>(index)];
    const auto slot = slot_of.find(index);
    for (const std::string& entry : optimizer_entries(options)) {
      const Value* found = slot == slot_of.end() ? nullptr : slot->second->find(entry);
      const auto* pickled = found == nullptr ? nullptr : found->as<PickledTensor>();
      if (pickled == nullptr) {
        file.fail(fmt::format("is of another optimizer: it has no \"{}\" of {}", entry, name));
      }
      const auto sizes = entry == "step" ? at::IntArrayRef() : parameter.sizes();
      state[own_name(entry, name)] =
          file.tensor(*pickled, sizes, fmt::format("{} of {}", entry, name));
    }
  }
}

/// Returns a training's count.
std::int64_t counted(const File& file, const Value& whole, const char* name) {
  const auto count = part_as<std::int64_t>(file, whole, name);
  if (count < 0) file.fail(fmt::format("\"{}\" is {}, expected 0 or more", name, count));
  return count;
}

void take_scaler(const File& file, const Value& whole, strategies::StateDictionary& state) {
  using models::LossScale;
  const Value* scaler = whole.find("scaler");
  if (scaler == nullptr) return;  // the training's loss was not scaled dynamically
  const double scale = part_as<double>(file, *scaler, "scale");
  if (!std::isfinite(scale) || scale <= 0) {
    file.fail(fmt::format("\"scale\" is {}, expected a number above 0", scale));
  }
  state[LossScale::scale_name] = at::scalar_tensor(scale, at::kDouble);
  const auto count = [&](const char* name) {
    return at::scalar_tensor(counted(file, *scaler, name), at::kLong);
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

/// Returns the training's position, whose step a checkpoint's name in a folder has, too.
Position position_of(const File& file, const Value& whole, const std::filesystem::path& path) {
  const Position position{.step = counted(file, whole, "step"),
                          .samples = counted(file, whole, "samples"),
                          .seconds = part_as<double>(file, whole, "seconds"),
                          .skipped = whole.find("skipped") == nullptr
                                         ? 0  // a file from before updates could be skipped
                                         : counted(file, whole, "skipped")};
  if (!std::isfinite(position.seconds) || position.seconds < 0) {
    file.fail(fmt::format("\"seconds\" is {}, expected 0 or more", position.seconds));
  }
  if (position.skipped > position.step) {
    file.fail(fmt::format("{} of {} steps were skipped", position.skipped, position.step));
  }
  const auto named = checkpoint::Folder::step_of(path);
  if (named && *named != position.step) {
    file.fail(fmt::format("is of step {}, but its name has another step", position.step));
  }
  return position;
}

/// Returns an upper bound of the bytes of parameters, buffers and an optimizer's state.
std::size_t most_storage(const CheckpointNames& names) {
  std::size_t bytes = std::size_t{1} << 20U;
  for (const auto* part : {&names.parameters, &names.buffers}) {
    for (const auto& each : *part) bytes += 4 * each.tensor.nbytes();
  }
  return bytes;
}

/// Returns the value of a checkpoint file.
const Value& checkpoint_in(const File& file) {
  if (part_as<std::string>(file, file.value(), "format") != checkpoint_format) {
    file.fail(fmt::format("expected format \"{}\"", checkpoint_format));
  }
  return file.value();
}

}  // namespace

std::string read_work(const std::filesystem::path& path) {
  const File file(path, 0);  // no tensor is read
  return part_as<std::string>(file, checkpoint_in(file), "work");
}

Checkpoint read_checkpoint(const std::filesystem::path& path, const models::Workload& workload) {
  const CheckpointNames names(workload);
  File file(path, most_storage(names));
  Checkpoint read;
  const Value& whole = checkpoint_in(file);
  read.position = position_of(file, part(file, whole, "training"), path);
  take_model(file, part(file, whole, "model"), names, read.state);
  take_optimizer(file, part(file, whole, "optimizer"), names, workload.options().optimizer,
                 read.position.step > read.position.skipped, read.state);
  take_scaler(file, whole, read.state);
  read.position.best = best_in(file, part(file, whole, "training"));
  read.work = part_as<std::string>(file, whole, "work");
  return read;
}

strategies::StateDictionary read_model(const std::filesystem::path& path,
                                       const models::Workload& workload) {
  const CheckpointNames names(workload);
  File file(path, most_storage(names));
  strategies::StateDictionary state;
  take_model(file, file.value(), names, state);
  return state;
}

}  // namespace stratagem::training
