// The names that a pickle may refer to: the ones that torch._weights_only_unpickler allows (PyTorch
// 2.11).
#pragma once

#include <string_view>

namespace stratagem::checkpoint {

/// The result of a call of a name.
enum class Named {
  refused,
  dictionary,  // an empty dictionary
  tensor,      // a tensor, from a storage, an offset, sizes and strides
  first,       // the first argument: a parameter is its tensor, a torch.Size its tuple
  typed,       // the first argument's result for the third: a tensor with attributes
  storage,     // the type of a storage, which is not called
  other,       // a value that no model needs
};

/// Returns the meaning of `name`: module and name, separated by a space.
Named meaning_of(std::string_view name);

}  // namespace stratagem::checkpoint
