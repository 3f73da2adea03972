// Causal self-attention and the choice of its fastest kernel.
//
// On the CPU, ATen's kernel for it (a FlashAttention) multiplies blocks with MKL, which does not
// use the full vector width of every processor, and in 16-bit formats with a oneDNN primitive that
// it creates anew for each block. Our kernel keeps one head's matrices in a core's caches and
// multiplies them there in float32, also for 16-bit values. In float64 the same code runs as a
// check. docs/explanation/cpu_performance.md has the figures; bench/programs/bench_attention.cpp
// shows when they change. Other devices and reference kernels take ATen's, and so do 16-bit formats
// if the processor has matrix units (AMX), which ATen's kernel uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stratagem::models {

/// Computes scaled dot-product attention over the positions up to each one's own (Vaswani et al.
/// 2017, "Attention Is All You Need", section 3.2). `qkv` is [n, sequence, 3 features]: query, key
/// and value, each [heads, features / heads]. Returns [n, sequence, features].
at::Tensor causal_attention(const at::Tensor& qkv, std::int64_t heads);

/// Computes the same with our own kernel, for CPU tensors of float32, float64 and 16 bits.
at::Tensor own_causal_attention(const at::Tensor& qkv, std::int64_t heads);

/// Returns whether causal_attention() uses our own kernel for this input.
bool takes_own_attention(const at::Tensor& qkv);

}  // namespace stratagem::models
