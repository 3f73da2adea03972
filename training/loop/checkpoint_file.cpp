#include "training/loop/checkpoint_file.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <utility>
#include <vector>

#include "models/loss_scale.h"
#include "training/loop/checkpoint_names.h"
#include "training/loop/torch_file.h"

namespace stratagem::training {
namespace {

using c10::IValue;

using AnyDictionary = c10::impl::GenericDict;
AnyDictionary dictionary() { return AnyDictionary(c10::StringType::get(), c10::AnyType::get()); }
AnyDictionary numbered() { return AnyDictionary(c10::IntType::get(), c10::AnyType::get()); }

/// The entries of the state in the order of the pickle's names, which is also that of the archive's
/// records.
class Entries {
 public:
  explicit Entries(distributed::StateReader& state) : state_(state) {}

  bool has(const std::string& name) const { return state_.entries().contains(name); }

  /// Returns a tensor of the entry's type and sizes that names its storage and has no memory.
  at::Tensor placed(const std::string& name) {
    const at::Tensor& form = state_.entries().at(name);
    names_.push_back(name);
    const auto storage = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), form.nbytes(), c10::DataPtr(nullptr, at::kCPU),
        /*allocator=*/nullptr, /*resizable=*/false);
    const at::Tensor tensor = at::empty({0}, form.options().device(at::kCPU))
                                  .set_(c10::Storage(storage), 0, form.sizes(), form.strides());
    if (state_.is_row_major(name)) known_.push_back(tensor);
    return tensor;
  }

  double number(const std::string& name) { return state_.read(name).item<double>(); }
  std::int64_t count(const std::string& name) { return state_.read(name).item<std::int64_t>(); }

  const std::vector<std::string>& names() const { return names_; }

 private:
  distributed::StateReader& state_;
  std::vector<std::string> names_;
  // The pickler memoises a tensor that has other references. These give the file the bytes of one
  // written from tensors in memory, where only a tensor in another order is a copy.
  std::vector<at::Tensor> known_;
};

AnyDictionary model_state(const CheckpointNames& names, Entries& entries) {
  AnyDictionary all = dictionary();
  for (const auto* part : {&names.parameters, &names.buffers}) {
    for (const auto& each : *part) all.insert(each.name, entries.placed(each.name));
  }
  return all;
}

/// Returns the options of the one group, like torch.optim's state_dict. With a schedule, `lr` is
/// the next step's and `initial_lr` the schedule's base, as torch.optim.lr_scheduler sets them.
AnyDictionary group_of(const models::OptimizerOptions& options,
                       std::optional<double> scheduled_rate, std::size_t parameters) {
  AnyDictionary group = dictionary();
  group.insert("lr", scheduled_rate.value_or(options.learning_rate));
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
  if (scheduled_rate) group.insert("initial_lr", options.learning_rate);
  c10::impl::GenericList indices(c10::AnyType::get());
  for (std::size_t index = 0; index < parameters; ++index) {
    indices.push_back(static_cast<std::int64_t>(index));
  }
  group.insert("params", indices);
  return group;
}

AnyDictionary optimizer_state(const CheckpointNames& names, Entries& entries,
                              const models::OptimizerOptions& options,
                              std::optional<double> scheduled_rate) {
  AnyDictionary slots = numbered();
  for (std::size_t index = 0; index < names.parameters.size(); ++index) {
    AnyDictionary slot = dictionary();
    for (const std::string& entry : optimizer_entries(options)) {
      const std::string name = own_name(entry, names.parameters[index].name);
      if (entries.has(name)) slot.insert(entry, entries.placed(name));
    }
    if (slot.size() > 0) slots.insert(static_cast<std::int64_t>(index), slot);
  }
  c10::impl::GenericList groups(c10::AnyType::get());
  groups.push_back(group_of(options, scheduled_rate, names.parameters.size()));
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
  all.insert("skipped", position.skipped);
  if (const BestEvaluation& best = position.best; best.exists()) {
    AnyDictionary entries = dictionary();
    entries.insert("monitor", best.monitor);
    entries.insert("value", best.value);
    entries.insert("step", best.step);
    entries.insert("last_step", best.last_step);
    entries.insert("without_improvement", best.without_improvement);
    all.insert("best", entries);
  }
  return all;
}

/// Returns the state_dict of torch.amp.GradScaler, plus the remaining hysteresis.
AnyDictionary scaler_state(Entries& entries) {
  using models::LossScale;
  AnyDictionary all = dictionary();
  all.insert("scale", entries.number(LossScale::scale_name));
  all.insert("growth_factor", LossScale::growth_factor);
  all.insert("backoff_factor", LossScale::backoff_factor);
  all.insert("growth_interval", LossScale::growth_interval);
  all.insert(growth_tracker, entries.count(LossScale::good_steps_name));
  all.insert(hysteresis_tracker, entries.count(LossScale::overflows_left_name));
  return all;
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const CheckpointNotes& notes,
                      distributed::StateReader& state, const models::Workload& workload) {
  const CheckpointNames names(workload);
  Entries entries(state);
  AnyDictionary all = dictionary();
  all.insert("format", std::string(checkpoint_format));
  all.insert("model", model_state(names, entries));
  all.insert("optimizer",
             optimizer_state(names, entries, workload.options().optimizer, notes.scheduled_rate));
  if (entries.has(models::LossScale::scale_name)) all.insert("scaler", scaler_state(entries));
  all.insert("training", position_state(notes.position));
  all.insert("work", notes.work);

  const std::vector<std::string>& read_in_order = entries.names();
  write_torch_file(path, all, [&](std::size_t place, const at::Tensor& /*without_memory*/) {
    return state.read(read_in_order.at(place));
  });
}

}  // namespace stratagem::training
