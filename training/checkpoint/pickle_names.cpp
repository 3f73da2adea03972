#include "training/checkpoint/pickle_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stratagem::checkpoint {
namespace {

using KnownName = std::pair<std::string_view, Named>;
constexpr std::array known_names = {
    KnownName{"collections OrderedDict", Named::dictionary},
    KnownName{"torch._utils _rebuild_tensor", Named::tensor},
    KnownName{"torch._utils _rebuild_tensor_v2", Named::tensor},
    KnownName{"torch._utils _rebuild_parameter", Named::first},
    KnownName{"torch._utils _rebuild_parameter_with_state", Named::first},
    KnownName{"torch Size", Named::first},
    KnownName{"torch._tensor _rebuild_from_type_v2", Named::typed},
    KnownName{"torch.storage UntypedStorage", Named::storage},
    KnownName{"collections Counter", Named::other},
    KnownName{"_codecs encode", Named::other},
    KnownName{"__builtin__ set", Named::other},
    KnownName{"builtins set", Named::other},
    KnownName{"__builtin__ bytearray", Named::other},
    KnownName{"builtins bytearray", Named::other},
    KnownName{"__builtin__ complex", Named::other},
    KnownName{"builtins complex", Named::other},
    KnownName{"torch device", Named::other},
    KnownName{"torch Tensor", Named::other},
    KnownName{"torch.nn.parameter Parameter", Named::other},
    KnownName{"torch.serialization _get_layout", Named::other},
    KnownName{"torch._utils _rebuild_tensor_v3", Named::other},
    KnownName{"torch._utils _rebuild_qtensor", Named::other},
    KnownName{"torch._utils _rebuild_sparse_tensor", Named::other},
    KnownName{"torch._utils _rebuild_nested_tensor", Named::other},
    KnownName{"torch._utils _rebuild_wrapper_subclass", Named::other},
    KnownName{"torch._utils _rebuild_meta_tensor_no_storage", Named::other},
    KnownName{"torch._utils _rebuild_device_tensor_from_numpy", Named::other},
    KnownName{"torch._utils _rebuild_device_tensor_from_cpu_tensor", Named::other}};

/// The first letters of the names of torch's number formats and quantisation schemes.
constexpr std::array<std::string_view, 10> formats = {"float",   "bfloat", "int",  "uint",  "bool",
                                                      "complex", "bits",   "qint", "quint", "per_"};

Named meaning_in_torch(std::string_view name, bool formats_too) {
  if (name.ends_with("Storage")) return Named::storage;
  if (name.ends_with("Tensor")) return Named::other;
  const bool is_format = formats_too && std::ranges::any_of(formats, [name](std::string_view part) {
                           return name.starts_with(part);
                         });
  return is_format ? Named::other : Named::refused;
}

}  // namespace

Named meaning_of(std::string_view name) {
  const auto found = std::ranges::find(known_names, name, &KnownName::first);
  if (found != known_names.end()) return found->second;
  const std::size_t space = name.find(' ');
  const std::string_view module = name.substr(0, space);
  const std::string_view rest = name.substr(space + 1);
  if (module == "torch") return meaning_in_torch(rest, true);
  const bool of_torch =
      module == "torch.cuda" || module == "torch.sparse" || module == "torch.cuda.sparse";
  return of_torch ? meaning_in_torch(rest, false) : Named::refused;
}

}  // namespace stratagem::checkpoint
