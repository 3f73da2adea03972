// libFuzzer's program: --reader=NAME, then libFuzzer's own options, which begin with one dash.
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "tests/fuzz/readers.h"

namespace {

const stratagem::fuzz::Reader* reader = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(const int* count, char*** arguments) {
  constexpr std::string_view option = "--reader=";
  for (int index = 1; index < *count; ++index) {
    const std::string_view argument = (*arguments)[index];
    if (argument.starts_with(option)) {
      reader = &stratagem::fuzz::reader_of(argument.substr(option.size()));
    }
  }
  if (reader != nullptr) return 0;
  for (const auto& each : stratagem::fuzz::readers()) fmt::print("{}\n", each.name);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reader->read({data, size});
  return 0;
}
