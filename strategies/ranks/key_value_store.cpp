#include "strategies/ranks/key_value_store.h"

#include <fmt/format.h>

namespace stratagem::ranks {

std::string StoreEndpoint::name() const {
  return file.empty() ? fmt::format("{}:{}", address, port) : file;
}

}  // namespace stratagem::ranks
