// Files for Python's torch.load with its defaults.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <filesystem>
#include <functional>

namespace stratagem::training {

/// Returns the values of the pickled value's tensor number `place`, counted from 0.
using ReadTensor = std::function<at::Tensor(std::size_t place, const at::Tensor& pickled)>;

/// Writes `value` like torch.save; its dictionaries and lists become Python's own. Each tensor in
/// it is dense and has its own storage. Calls `read` for one tensor after another, so that the
/// tensors in `value` need no memory. The file appears whole or not at all. Throws
/// std::system_error.
void write_torch_file(const std::filesystem::path& path, const c10::IValue& value,
                      const ReadTensor& read);

}  // namespace stratagem::training
