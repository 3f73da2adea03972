// Linear layers whose matrix is sharded over ranks (Shoeybi et al. 2019, section 3).
//
// Column parallel: each rank has some of the outputs; Y = [X A_1, X A_2, ...]. Row parallel: each
// has some of the inputs; Y = X_1 A_1 + X_2 A_2 + .... A column-parallel layer followed by a
// row-parallel one needs a single exchange in each direction. With Layout::sequence the inputs of
// the first and the outputs of the second are parts along the sequence, so the collective also
// shards the layers between them.
//
// Weights are slices of the whole matrix, so any number of ranks gives the same model.
#pragma once

#include "models/basic_layers.h"
#include "strategies/layer_exchange/exchange_group.h"
#include "strategies/tensor_parallel/layout.h"

namespace stratagem::tensor_parallel {

struct ColumnOptions {
  Layout layout = Layout::tensor;
  bool gather_output = false;  // gives every rank all outputs
};

/// Maps [n, ..., in] -> [n, ..., out / ranks], or all of out. In its backward pass the input's
/// gradient is in flight while the weight's is computed. With Layout::sequence it keeps its own
/// part of the input and gathers the whole again there (Korthikanti et al. 2022, section 4.2.2),
/// see layer_exchange::ExchangeOptions.
class ColumnParallelLinear : public models::LinearLayer {
 public:
  /// Takes this rank's rows of the weight, [out / ranks, in], and of the bias, if there is one.
  /// Outputs can be gathered if all ranks have equally many.
  ColumnParallelLinear(std::string name, at::Tensor weight, at::Tensor bias,
                       layer_exchange::ExchangeGroup& group, const ColumnOptions& options);
  at::Tensor forward(const at::Tensor& input) override;

 private:
  layer_exchange::ExchangeGroup& group_;
  ColumnOptions options_;
};

/// Maps [n, ..., in / ranks] -> [n, ..., out]. The bias is added once, after the sum.
class RowParallelLinear : public models::LinearLayer {
 public:
  /// Takes this rank's columns of the weight, [out, in / ranks], and the whole bias.
  RowParallelLinear(std::string name, at::Tensor weight, at::Tensor bias,
                    layer_exchange::ExchangeGroup& group, Layout layout);
  at::Tensor forward(const at::Tensor& input) override;

 private:
  layer_exchange::ExchangeGroup& group_;
  Layout layout_;
};

}  // namespace stratagem::tensor_parallel
