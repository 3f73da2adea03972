// Values that tests and the scripts that write reference files make alike, each from the position
// in its tensor, so that no tensors have to be exchanged.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace stratagem::models {

// Values in [-0.5, 0.5) of the tensor number `index`; the same hash as in make_reference.py.
inline at::Tensor uniform(std::uint64_t index, at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  double* values = tensor.mutable_data_ptr<double>();
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(tensor.numel()); ++i) {
    std::uint64_t x = i + index * 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    x ^= x >> 31;
    values[i] = static_cast<double>(x >> 11) * 0x1p-53 - 0.5;
  }
  return tensor;
}

inline at::Tensor value(const std::string& name, std::uint64_t index, at::IntArrayRef sizes) {
  const at::Tensor u = uniform(index, sizes);
  if (sizes.size() == 4) {
    return u * (2.0 * std::sqrt(6.0 / static_cast<double>(sizes[1] * sizes[2] * sizes[3])));
  }
  if (sizes.size() == 2) {
    return u * (2.0 / std::sqrt(static_cast<double>(sizes[1])));
  }
  const bool near_zero = name.ends_with("bias") || name.ends_with("running_mean");
  return u * 0.2 + (near_zero ? 0.0 : 1.0);
}

// Sees the order of the elements: weights 1, 2, ..., 7, 1, 2, ...
inline double checksum(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous().reshape(-1);
  const at::Tensor weights = at::arange(1, 8, at::kDouble).repeat({flat.numel() / 7 + 1});
  return at::dot(flat, weights.narrow(0, 0, flat.numel())).item<double>();
}

}  // namespace stratagem::models
