// Files that Python's torch.load reads with its defaults.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <filesystem>
#include <functional>

namespace stratagem::training {

/// Returns the values of the tensor that the pickled value has at a place, counted from 0.
using ReadTensor = std::function<at::Tensor(std::size_t place, const at::Tensor& pickled)>;

/// Writes `value` as torch.save does; its dictionaries and lists become Python's own. Each tensor
/// in it is dense and has a storage of its own. `read` is called for one tensor after another, so
/// that those in `value` need no memory. The file is there whole or not at all. Throws
/// std::system_error.
void write_torch_file(const std::filesystem::path& path, const c10::IValue& value,
                      const ReadTensor& read);

}  // namespace stratagem::training
