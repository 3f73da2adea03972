// Causal self-attention, and the one place that knows how it runs best.
//
// On the CPU, ATen's kernel for it (a FlashAttention) multiplies blocks with MKL, which does not
// use the full vector width of every processor, and in formats of 16 bits by a oneDNN primitive
// that it makes anew for each block. Ours keeps one head's matrices in a core's caches and
// multiplies them there, in float32 also what is stored in 16 bits; in float64 the same code runs
// for a check. docs/explanation/cpu_performance.md has the figures,
// bench/programs/bench_attention.cpp tells when that changes. Other devices and reference kernels
// take ATen's; so do 16 bits where the processor has matrix units (AMX), which ATen's uses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stratagem::models {

/// Scaled dot-product attention over the positions up to each one's own (Vaswani et al. 2017,
/// "Attention Is All You Need", section 3.2). `qkv` is [n, sequence, 3 features]: query, key and
/// value, each [heads, features / heads]; returns [n, sequence, features].
at::Tensor causal_attention(const at::Tensor& qkv, std::int64_t heads);

/// Computes the same with our own kernel, for CPU tensors of float32, float64 and 16 bits.
at::Tensor own_causal_attention(const at::Tensor& qkv, std::int64_t heads);

/// Returns whether causal_attention() uses our own kernel for this input.
bool takes_own_attention(const at::Tensor& qkv);

}  // namespace stratagem::models
