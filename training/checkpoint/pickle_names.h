// The names that a pickle may refer to: those that torch._weights_only_unpickler allows
// (PyTorch 2.11).
#pragma once

#include <string_view>

namespace stratagem::checkpoint {

/// What calling a name gives.
enum class Named {
  refused,
  dictionary,  // an empty one
  tensor,      // of a storage, an offset, sizes and strides
  first,       // its first argument: a parameter is its tensor, a torch.Size its tuple
  typed,       // what its first argument gives of its third: a tensor with attributes
  storage,     // is not called: the type of a storage
  other,       // a value that no model needs
};

/// `name`: module and name with a space between them.
Named meaning_of(std::string_view name);

}  // namespace stratagem::checkpoint
