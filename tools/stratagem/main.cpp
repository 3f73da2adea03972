// stratagem: measures how parallelism strategies train the same model on the same batch.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "bench/config/plugins.h"
#include "bench/launch/exit_codes.h"
#include "strategies/schedules/schedule_file.h"
#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {
namespace {

const Performers without_torch = {{"simulate", simulate},
                                  {"report", report},
                                  {"compare", compare},
                                  {"history", history},
                                  {"schema", schema}};

/// Returns whether a call names plug-ins besides orders of actions, which need no LibTorch.
bool has_plugins(const Arguments& arguments) {
  return !std::ranges::all_of(bench::requested_plugins(arguments), [](const std::string& file) {
    return file.starts_with(schedules::order_prefix);
  });
}

/// Returns whether a call needs models, strategies or plug-ins.
bool needs_torch(Arguments arguments) {
  constexpr std::array<std::string_view, 9> always = {
      "list", "run", "train", "verify", "doctor", "calibrate", "export", "prove", "worker"};
  if (arguments.size() > 1 && arguments.front() == "help") arguments.erase(arguments.begin());
  if (arguments.empty()) return false;
  if (std::ranges::find(always, arguments.front()) != always.end()) return true;
  return without_torch.contains(arguments.front()) &&
         (is_calibrated(arguments) || has_plugins(arguments));
}

/// Becomes the program beside this one, with the same arguments; does not return.
[[noreturn]] void become_torch_program(char** argv) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "stratagem_torch";
  ::execv(program.c_str(), argv);
  throw std::invalid_argument(fmt::format("cannot start {}: {}; it belongs beside stratagem",
                                          program.string(),
                                          std::generic_category().message(errno)));
}

}  // namespace
}  // namespace stratagem::tools

int main(int argc, char** argv) {
  using namespace stratagem;
  return bench::run_main("stratagem", [&] {
    const tools::Arguments arguments(argv + 1, argv + argc);
    if (tools::needs_torch(arguments)) tools::become_torch_program(argv);
    return tools::dispatch(arguments, tools::without_torch);
  });
}
