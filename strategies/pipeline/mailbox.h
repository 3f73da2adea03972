// Mailbox: what a stage exchanges with neighbours on other ranks.
//
// A send returns at once; its tensor is kept until the other side has it. A receive posts its
// successor before it waits, so that the next micro-batch travels while this one is computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>

#include "models/layer.h"
#include "strategies/pipeline/action.h"
#include "strategies/runtime/process_group.h"

namespace stratagem::pipeline {

class Mailbox {
 public:
  struct Route {
    runtime::ProcessGroup* group = nullptr;
    int peer = 0;  // its rank in the group
    int tag = 0;   // the same on both sides, and no other transfer's of the step
  };
  struct Directory {
    std::function<Route(const Action&)> route;                 // of a send or a receive
    std::function<models::Shape(const Action&)> shape;         // of what a receive brings
    std::function<std::optional<Action>(const Action&)> next;  // the stage's next receive like this
  };

  /// `options` and `format` are those of activations.
  Mailbox(Directory directory, at::TensorOptions options, at::MemoryFormat format);

  void send(const Action& action, const at::Tensor& tensor);
  at::Tensor receive(const Action& action);
  /// The peer has what `sent` sent: it has answered. Forgets the tensor.
  void settle(const Action& sent);
  /// Waits until everything sent has arrived.
  void drain();

 private:
  struct Posted {
    at::Tensor tensor;
    runtime::TransferPointer transfer;
  };
  void post(const Action& receive);

  Directory directory_;
  at::TensorOptions options_;
  at::MemoryFormat format_;
  std::map<Action, Posted> posted_;
  std::map<Action, runtime::TransferPointer> sent_;
};

}  // namespace stratagem::pipeline
