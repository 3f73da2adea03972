// Stream devices for LibTorch: what their threads allocate is StreamMemory, uses are recorded there
// by backends::mark_used, and every operator's tensors are watched.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strategies/backends/backend.h"
#include "tests/strategies/stream_device.h"
#include "tests/strategies/stream_memory.h"

namespace stratagem::runtime {

/// Of the process. Never destroyed: c10 frees blocks until the very end.
inline StreamMemory& stream_memory() {
  static StreamMemory& memory = *std::make_unique<StreamMemory>().release();
  return memory;
}

/// Gives threads of streams their streams' memory, and others what they had before.
class StreamAllocator final : public c10::Allocator {
 public:
  explicit StreamAllocator(c10::Allocator& of_host) { host() = &of_host; }

  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = nullptr;
    if (bytes > 0 && this_thread_state().stream != nullptr) {
      data = stream_memory().allocate(bytes);
    } else if (bytes > 0) {
      data = host()->raw_allocate(bytes);
      stream_memory().watch(data);
    }
    return {data, data, &free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    std::memcpy(destination, source, bytes);
  }

 private:
  static c10::Allocator*& host() {
    static c10::Allocator* allocator = nullptr;
    return allocator;
  }
  static void free(void* data) {
    if (data != nullptr && !stream_memory().free(data)) host()->raw_deallocate(data);
  }
};

/// What CUDA's guard does with the caching allocator.
struct StreamGuard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CPU> {
  void recordDataPtrOnStream(const c10::DataPtr& data,
                             const c10::Stream& /*current*/) const override {
    stream_memory().record_use(data.get());
  }
};

/// What an operator does with the memory of its arguments; none: it looks at their shapes alone.
inline std::vector<std::optional<Use>> uses_of(const at::RecordFunction& function,
                                               const std::string& name) {
  static const std::set<std::string> copies{"aten::copy_", "aten::clone", "aten::_to_copy"};
  static const std::set<std::string> of_shapes{"aten::requires_grad_", "aten::set_data",
                                               "aten::detach_", "aten::retain_grad"};
  std::vector<std::optional<Use>> uses;
  const auto schema = function.operator_schema();
  if (!schema || of_shapes.contains(name) || name.ends_with("_like") ||
      name.starts_with("aten::new_")) {
    return uses;
  }
  for (const c10::Argument& argument : schema->arguments()) {
    const c10::AliasInfo* alias = argument.alias_info();
    if (alias != nullptr && !alias->isWrite()) {
      uses.push_back(std::nullopt);  // the result is a view of it
    } else {
      uses.push_back(alias != nullptr        ? Use::write
                     : copies.contains(name) ? Use::copy_from
                                             : Use::read);
    }
  }
  return uses;
}

inline void watch_tensors(const c10::IValue& value, Use use, const std::string& what) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.has_storage()) {
      stream_memory().use(tensor.storage().data(), use, what);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) watch_tensors(element, use, what);
  }
}

inline std::unique_ptr<at::ObserverContext> watch_operator(const at::RecordFunction& function) {
  static thread_local std::unordered_map<std::string, std::vector<std::optional<Use>>> known;
  if (!this_thread_state().is_known()) return nullptr;
  const auto name = function.operator_name();
  if (!name) return nullptr;
  const std::string key = name->name + "." + name->overload_name;
  if (!known.contains(key)) known.emplace(key, uses_of(function, name->name));
  const auto& uses = known.at(key);
  const auto inputs = function.inputs();
  for (std::size_t index = 0; index < std::min(uses.size(), inputs.size()); ++index) {
    if (uses[index]) watch_tensors(inputs[index], *uses[index], name->name);
  }
  return nullptr;
}

/// While it lives, memory comes from the StreamAllocator and operators are watched. What was
/// allocated earlier is not watched.
class StreamMemoryInUse {
 public:
  StreamMemoryInUse() : before_(*c10::GetCPUAllocator()) {
    static StreamAllocator allocator(before_);
    static const StreamGuard guard;
    static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kCPU, &guard);
    use(allocator);
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&watch_operator)
                                        .needsInputs(true)
                                        .scopes({at::RecordScope::FUNCTION}));
  }
  ~StreamMemoryInUse() {
    at::removeCallback(handle_);
    use(before_);
  }
  StreamMemoryInUse(const StreamMemoryInUse&) = delete;
  StreamMemoryInUse& operator=(const StreamMemoryInUse&) = delete;

 private:
  static void use(c10::Allocator& allocator) {
    constexpr std::uint8_t above_accounting = 20;
    c10::SetCPUAllocator(&allocator, above_accounting);
  }

  c10::Allocator& before_;
  at::CallbackHandle handle_ = 0;
};

/// One for all stream devices that there are; the last of them takes it along.
inline std::shared_ptr<StreamMemoryInUse> use_stream_memory() {
  static std::mutex mutex;
  static std::weak_ptr<StreamMemoryInUse> current;
  const std::lock_guard lock(mutex);
  std::shared_ptr<StreamMemoryInUse> in_use = current.lock();
  if (!in_use) current = in_use = std::make_shared<StreamMemoryInUse>();
  return in_use;
}

/// See StreamDevice for `apart`.
inline backends::DeviceGroup stream_devices(int count, bool apart, ProgressPage* activity = nullptr,
                                            bool forgets_copies = false) {
  const auto in_use = use_stream_memory();
  backends::DeviceGroup group;
  group.monitor = std::make_shared<Monitor>();
  for (int index = 0; index < count; ++index) {
    DeviceDescription description;
    description.index = index;
    description.separate_copy_stream = true;
    StreamDevice::Options options;
    options.on_start = [] {
      // The first call reads the environment and would overwrite a number that was set before it.
      at::get_num_threads();
      at::set_num_threads(1);
    };
    options.memory = {[in_use, number = options.number] {
                        return stream_memory().of_device(number);  // while the device lives
                      },
                      [number = options.number] { stream_memory().reset_peak(number); }};
    options.activity = activity;
    options.apart = apart;
    options.forgets_copies = forgets_copies;
    options.seed = static_cast<std::uint64_t>(index);
    group.devices.push_back(
        std::make_unique<StreamDevice>(description, group.monitor, std::move(options)));
  }
  return group;
}

/// Devices whose host's part runs in order, for strategies that enqueue step upon step.
inline backends::DeviceGroup stream_devices_in_order(int count) {
  return stream_devices(count, /*apart=*/false);
}

/// Fails the test for each mistake that was reported since it was last asked.
inline void expect_no_mistakes_with_streams() {
  for (const std::string& report : stream_memory().take_reports()) ADD_FAILURE() << report;
}

}  // namespace stratagem::runtime
