#include "bench/machine/machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bench/machine/kernel_files.h"
#include "bench/machine/processor.h"
#include "reports/build_information.h"

namespace stratagem::bench {

namespace {

namespace fs = std::filesystem;

fs::path cpu_folder(const SystemPaths& paths, int cpu) {
  return paths.sys / "devices/system/cpu" / fmt::format("cpu{}", cpu);
}

/// Returns equal texts for processors that are threads of one core.
std::string core_identity(const SystemPaths& paths, int cpu) {
  const fs::path topology = cpu_folder(paths, cpu) / "topology";
  const std::string siblings = first_line(topology / "core_cpus_list");
  if (!siblings.empty()) return siblings;
  return first_line(topology / "thread_siblings_list", fmt::format("cpu{}", cpu));
}

int numa_node(const SystemPaths& paths, int cpu) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(cpu_folder(paths, cpu), ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node")) return static_cast<int>(number_or(name.substr(4), 0));
  }
  return 0;
}

int count_numa_nodes(const SystemPaths& paths) {
  std::error_code ignored;
  int nodes = 0;
  for (const auto& entry : fs::directory_iterator(paths.sys / "devices/system/node", ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && name.find_first_not_of("0123456789", 4) == std::string::npos) {
      ++nodes;
    }
  }
  return std::max(nodes, 1);
}

/// Returns the processors of the machine, whether or not this process may use them.
std::vector<int> all_cpus(const SystemPaths& paths) {
  std::vector<int> cpus;
  while (fs::exists(cpu_folder(paths, static_cast<int>(cpus.size())))) {
    cpus.push_back(static_cast<int>(cpus.size()));
  }
  return cpus;
}

// Returns the nominal clock: the present one would differ from run to run.
double nominal_mhz(const SystemPaths& paths) {
  const double base =
      number_or(first_line(cpu_folder(paths, 0) / "cpufreq/base_frequency"), 0) / 1000;
  if (base > 0) return base;
  // A constant time-stamp counter ticks twice a BogoMIPS.
  return std::round(number_or(field(paths.proc / "cpuinfo", "bogomips"), 0) / 2);
}

/// Returns "madvise" for "always [madvise] never".
std::string selected(const std::string& choices) {
  const auto begin = choices.find('[');
  const auto end = choices.find(']');
  if (begin == std::string::npos || end == std::string::npos) return "unknown";
  return choices.substr(begin + 1, end - begin - 1);
}

std::string smt(const SystemPaths& paths) {
  const std::string active = first_line(paths.sys / "devices/system/cpu/smt/active");
  return active == "1" ? "on" : active == "0" ? "off" : "";
}

std::vector<double> load_average(const SystemPaths& paths) {
  std::istringstream line(first_line(paths.proc / "loadavg"));
  std::vector<double> loads;
  for (double load = 0; loads.size() < 3 && line >> load;) loads.push_back(load);
  return loads;
}

std::vector<std::string> gpu_models(const SystemPaths& paths) {
  std::vector<std::string> models;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(paths.proc / "driver/nvidia/gpus", ignored)) {
    models.push_back(field(entry.path() / "information", "Model"));
  }
  std::sort(models.begin(), models.end());
  return models;
}

/// Returns "580.1.2" for "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.1.2  ...".
std::string gpu_driver(const SystemPaths& paths) {
  std::istringstream words(first_line(paths.proc / "driver/nvidia/version"));
  for (std::string word; words >> word;) {
    if (word.find('.') != std::string::npos && std::isdigit(static_cast<unsigned char>(word[0]))) {
      return word;
    }
  }
  return "";
}

}  // namespace

std::vector<int> affinity_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  return cpus;
}

std::vector<int> one_per_core(const std::vector<int>& mask, const SystemPaths& paths) {
  std::set<std::string> seen;
  std::map<int, std::vector<int>> by_node;
  for (const int cpu : mask) {
    if (seen.insert(core_identity(paths, cpu)).second)
      by_node[numa_node(paths, cpu)].push_back(cpu);
  }
  std::vector<std::vector<int>> nodes;
  for (auto& [node, cpus] : by_node) nodes.push_back(std::move(cpus));
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& left, const auto& right) { return left.size() > right.size(); });
  std::vector<int> cores;
  for (const auto& cpus : nodes) cores.insert(cores.end(), cpus.begin(), cpus.end());
  return cores;
}

std::vector<int> available_cores() { return one_per_core(affinity_mask()); }

std::filesystem::path temporary_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder;
  for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {  // in the library's order
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    throw std::invalid_argument(
        fmt::format("{}={}: this folder for temporary files does not exist", name, value));
  }
  throw std::invalid_argument("/tmp: this folder for temporary files does not exist; set TMPDIR");
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

MachineFacts machine_facts(const SystemPaths& paths) {
  MachineFacts facts;
  facts.cpu_model = field(paths.proc / "cpuinfo", "model name");
  if (facts.cpu_model.empty()) facts.cpu_model = "unknown";
  const std::vector<int> cpus = all_cpus(paths);
  facts.logical_cpus = static_cast<int>(cpus.size());
  facts.physical_cores = static_cast<int>(one_per_core(cpus, paths).size());
  facts.available_cores = static_cast<int>(one_per_core(affinity_mask(), paths).size());
  facts.numa_nodes = count_numa_nodes(paths);
  facts.nominal_mhz = nominal_mhz(paths);
  const double kib = number_or(field(paths.proc / "meminfo", "MemTotal"), 0);
  facts.memory_gib = std::round(kib / 1024 / 1024 * 10) / 10;
  facts.huge_pages = selected(first_line(paths.sys / "kernel/mm/transparent_hugepage/enabled"));
  facts.governor = first_line(cpu_folder(paths, 0) / "cpufreq/scaling_governor", "none");
  facts.kernel = first_line(paths.proc / "sys/kernel/osrelease");
  facts.microcode = field(paths.proc / "cpuinfo", "microcode");
  facts.smt = smt(paths);
  facts.load_average = load_average(paths);
  facts.gpu_models = gpu_models(paths);
  facts.gpu_driver = gpu_driver(paths);
  return facts;
}

bool is_untimed() {
  const char* value = std::getenv("STRATAGEM_UNTIMED");
  return value != nullptr && *value != '\0';
}

std::string library_settings() {
  constexpr std::string_view prefixes[] = {
      "ATEN_", "CUBLAS_", "CUDA_",   "CUDNN_",      "DNNL_",   "GLIBC_TUNABLES=",
      "GLOO_", "GOMP_",   "KMP_",    "LD_PRELOAD=", "MALLOC_", "MKL_",
      "NCCL_", "OMP_",    "ONEDNN_", "PYTORCH_",    "TORCH_",  "STRATAGEM_UNTIMED"};
  std::vector<std::string_view> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (variable.starts_with("OMP_NUM_THREADS=")) continue;
    if (std::ranges::any_of(prefixes, [&](auto prefix) { return variable.starts_with(prefix); })) {
      found.push_back(variable);
    }
  }
  std::ranges::sort(found);
  return fmt::format("{}", fmt::join(found, " "));
}

std::string time_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string date = fmt::format("{:%FT%T%z}", fmt::localtime(now));
  return date.substr(0, date.size() - 2) + ":" + date.substr(date.size() - 2);
}

std::string allocator_name() { return STRATAGEM_ALLOCATOR; }

std::string torch_version() { return STRATAGEM_TORCH_VERSION; }

reports::Context make_context(const std::string& command_line) {
  const MachineFacts facts = machine_facts();
  const reports::BuildInformation build = reports::build_information();
  reports::Context context;
  context.date = time_now();
  context.host_name = host_name();
  context.executable = fs::read_symlink("/proc/self/exe").string();
  context.num_cpus = facts.logical_cpus;
  context.mhz_per_cpu = facts.nominal_mhz;
  context.cpu_scaling_enabled = facts.clock_scales();
  context.caches = caches();
  context.load_average = facts.load_average;
  context.build_type = build.build_type;
  context.version = build.version;
  context.git_commit = build.git_commit;
  context.command_line = command_line;
  context.hardware = {{"cpu_model", facts.cpu_model},
                      {"logical_cpus", std::int64_t{facts.logical_cpus}},
                      {"physical_cores", std::int64_t{facts.physical_cores}},
                      {"available_cores", std::int64_t{facts.available_cores}},
                      {"numa_nodes", std::int64_t{facts.numa_nodes}},
                      {"nominal_mhz", facts.nominal_mhz},
                      {"memory_gib", facts.memory_gib},
                      {"huge_pages", facts.huge_pages},
                      {"governor", facts.governor},
                      {"allocator", allocator_name()},
                      {"gpu_models", fmt::format("{}", fmt::join(facts.gpu_models, ", "))}};
  context.software = {{"torch", torch_version()},
                      {"torch_build_id", torch_build_id()},
                      {"compiler", build.compiler},
                      {"compiler_flags", build.compiler_flags},
                      {"sanitizers", build.sanitizers},
                      {"cuda_backend", build.cuda},
                      {"cuda", build.cuda_version},
                      {"nccl", build.nccl_version},
                      {"gpu_driver", facts.gpu_driver},
                      {"kernel", facts.kernel},
                      {"hypervisor", hypervisor()},
                      {"microcode", facts.microcode},
                      {"instruction_sets", instruction_sets()},
                      {"smt", facts.smt},
                      {"environment", library_settings()},
                      {"build_id", build_id()}};
  return context;
}

}  // namespace stratagem::bench
