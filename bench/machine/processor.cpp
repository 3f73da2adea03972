#include "bench/machine/processor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "bench/machine/kernel_files.h"

namespace stratagem::bench {
namespace {

/// The list begins with extensions of x86-64; those of 64-bit ARM follow.
constexpr auto extensions = std::to_array<std::string_view>(
    {"avx", "avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16",
     "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimdhp", "asimddp", "sve",
     "sve2", "bf16", "i8mm"});

std::vector<std::string> flags(const SystemPaths& paths) {
  std::istringstream words(field(paths.proc / "cpuinfo", "flags") + " " +
                           field(paths.proc / "cpuinfo", "Features"));
  std::vector<std::string> found;
  for (std::string word; words >> word;) found.push_back(word);
  return found;
}

/// Returns the number of processors in "0-3,8".
int counted(const std::string& list) {
  int count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    const double first = number_or(part, 0);
    const double last = dash == std::string::npos ? first : number_or(part.substr(dash + 1), first);
    count += static_cast<int>(last - first) + 1;
  }
  return count;
}

}  // namespace

std::string instruction_sets(const SystemPaths& paths) {
  const std::vector<std::string> offered = flags(paths);
  std::vector<std::string_view> found;
  std::ranges::copy_if(extensions, std::back_inserter(found), [&](std::string_view extension) {
    return std::ranges::find(offered, extension) != offered.end();
  });
  return fmt::format("{}", fmt::join(found, " "));
}

std::string hypervisor(const SystemPaths& paths) {
  const std::string type = first_line(paths.sys / "hypervisor/type");
  if (!type.empty()) return type;
  const std::vector<std::string> offered = flags(paths);
  if (std::ranges::find(offered, "hypervisor") == offered.end()) return "";
  const std::string vendor = first_line(paths.sys / "class/dmi/id/sys_vendor");
  return vendor.empty() ? "unknown" : vendor;
}

std::vector<reports::Cache> caches(const SystemPaths& paths) {
  std::vector<reports::Cache> found;
  for (int index = 0;; ++index) {
    const std::filesystem::path folder =
        paths.sys / "devices/system/cpu/cpu0/cache" / fmt::format("index{}", index);
    const std::string size = first_line(folder / "size");  // "48K"
    if (size.empty()) return found;
    const std::int64_t unit = size.ends_with('M') ? 1024 * 1024 : size.ends_with('K') ? 1024 : 1;
    found.push_back({.type = first_line(folder / "type"),
                     .level = static_cast<int>(number_or(first_line(folder / "level"), 0)),
                     .size = static_cast<std::int64_t>(number_or(size, 0)) * unit,
                     .num_sharing = counted(first_line(folder / "shared_cpu_list"))});
  }
}

}  // namespace stratagem::bench
