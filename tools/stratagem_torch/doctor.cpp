// stratagem doctor: reports what this machine has, and remedies for what is missing. Every line is
// "ok" or "warn"; a warning ends with its remedy.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "bench/machine/machine.h"
#include "bench/machine/noise_sources.h"
#include "bench/measure/cache.h"
#include "reports/build_information.h"
#include "strategies/ranks/launcher_environment.h"
#include "tools/stratagem/parse.h"
#include "tools/stratagem/python.h"

namespace stratagem::tools {
namespace {

void ok(const std::string& what, const std::string& found) {
  fmt::print("ok    {:<15} {}\n", what, found);
}

void warn(const std::string& what, const std::string& found, const std::string& remedy) {
  fmt::print("warn  {:<15} {}: {}\n", what, found, remedy);
}

bool on_path(const std::string& program) {
  std::istringstream folders(ranks::process_environment("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// Returns whether the dynamic linker finds a library that nothing here is linked with.
bool loadable(const char* library) {
  const std::unique_ptr<void, int (*)(void*)> handle(::dlopen(library, RTLD_LAZY | RTLD_LOCAL),
                                                     &::dlclose);
  return handle != nullptr;
}

void tell(bool good, const std::string& what, const std::string& found, const std::string& wrong,
          const std::string& remedy) {
  good ? ok(what, found) : warn(what, wrong, remedy);
}

void report_build() {
  const reports::BuildInformation build = reports::build_information();
  ok("stratagem",
     fmt::format("{} ({}), compiled by {}", build.version, build.git_commit, build.compiler));
  tell(build.build_type == "Release" && build.sanitizers.empty(), "build", "Release",
       fmt::format("{} {}", build.build_type, build.sanitizers),
       "times are not representative; measure with cmake --preset release");
  ok("LibTorch", fmt::format("{} in {}", bench::torch_version(), bench::torch_library_path()));
  tell(bench::allocator_name() == "jemalloc", "allocator", "jemalloc, linked in",
       bench::allocator_name(),
       "large activations are mapped anew in every step; build with jemalloc");
}

void report_gpus(const bench::MachineFacts& facts) {
  const bool built = reports::build_information().cuda;
  if (facts.gpu_driver.empty()) {
    ok("GPU", built ? "none: no NVIDIA driver is loaded" : "none, and none needed: a CPU build");
    return;
  }
  ok("GPU driver", facts.gpu_driver);
  for (const std::string& model : facts.gpu_models) ok("GPU", model);
  if (!on_path("nvidia-smi")) {
    warn("nvidia-smi", "not on the PATH", "install the driver's utilities to watch the GPUs");
  }
  if (!built) {
    warn("CUDA", "this build has no CUDA backend", "configure with cmake --preset cuda");
  } else {
    ok("CUDA", "backend built in");
    tell(loadable("libnccl.so.2"), "NCCL", "libnccl.so.2", "libnccl.so.2 cannot be loaded",
         "install NCCL, or the full torch wheel");
  }
}

// Only the headers are needed: LibTorch contains the library.
void report_gloo() {
  tell(std::filesystem::exists("/usr/include/gloo/config.h"), "Gloo",
       "headers in /usr/include/gloo", "no headers", "apt install libgloo-dev before building");
}

void report_launcher() {
  for (const auto& [variable, name] :
       {std::pair{"TORCHELASTIC_RUN_ID", "torchrun"}, std::pair{"SLURM_PROCID", "srun"},
        std::pair{"OMPI_COMM_WORLD_RANK", "mpirun"}, std::pair{"PMI_RANK", "mpirun"}}) {
    if (!ranks::process_environment(variable).value_or("").empty()) {
      warn("launcher", fmt::format("started by {} ({})", name, variable),
           "one machine needs none; start stratagem itself");
      return;
    }
  }
  ok("launcher", "none: the command starts its own processes");
}

void report_processor(const bench::MachineFacts& facts) {
  ok("processor", fmt::format("{}, {:.0f} MHz nominal, {} GiB", facts.cpu_model, facts.nominal_mhz,
                              facts.memory_gib));
  const std::string cores =
      fmt::format("{} of {} physical cores may be used, {} NUMA node{}", facts.available_cores,
                  facts.physical_cores, facts.numa_nodes, facts.numa_nodes == 1 ? "" : "s");
  tell(facts.available_cores >= 2, "cores", cores, cores,
       "two devices need two cores; see taskset and the container's cpuset");
}

/// Looks for a second for what would disturb a measurement.
void report_noise(const bench::MachineFacts& facts) {
  const bench::NoiseCounters before = bench::read_noise();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::vector<bench::NoiseSource> found = bench::standing_noise_sources(facts);
  for (auto& disturbance : bench::noise_sources_between(before, bench::read_noise())) {
    found.push_back(std::move(disturbance));
  }
  for (const bench::NominalSetting& calm : bench::nominal_settings(facts)) {
    const bool disturbed =
        std::ranges::find(found, calm.what, &bench::NoiseSource::what) != found.end();
    if (!disturbed) ok(calm.what, calm.state);
  }
  for (const bench::NoiseSource& disturbance : found) {
    warn(disturbance.what, disturbance.found, disturbance.remedy);
  }
}

void report_python() {
  const std::string python = find_python();
  const PythonAnswer answer = ask_python(
      python,
      "import sys, jinja2, msgspec, numpy, vl_convert; print(sys.version.split()[0], 'numpy', "
      "numpy.__version__, 'vl-convert', vl_convert.__version__)");
  tell(answer.exit_code == 0, "Python", fmt::format("{} in {}", answer.text, python),
       fmt::format("{} reports: {}", python, answer.text.substr(answer.text.rfind('\n') + 1)),
       "run tools/run once, or set STRATAGEM_PYTHON; only charts and reports need it");
  const std::string package = find_reports_package();
  tell(!package.empty(), "reports", package, "the package stratagem_reports is missing",
       "install with cmake --install");
}

void report_cache() {
  const std::filesystem::path folder = bench::default_cache_folder();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  tell(::access(folder.c_str(), W_OK) == 0, "cache", folder.string(),
       folder.string() + " cannot be written",
       "set XDG_CACHE_HOME; without it every run verifies and calibrates anew");
}

}  // namespace

int doctor(const Arguments& arguments) {
  CLI::App app("Checks this machine and prints a remedy for each problem.", "stratagem doctor");
  if (!parse(app, arguments)) return 0;
  const bench::MachineFacts facts = bench::machine_facts();
  report_build();
  report_gpus(facts);
  report_gloo();
  report_launcher();
  report_processor(facts);
  report_noise(facts);
  report_python();
  report_cache();
  return 0;
}

}  // namespace stratagem::tools
