// stratagem list: prints what this build contains and what this machine has.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "bench/google_benchmark/command_line.h"
#include "bench/machine/machine.h"
#include "models/datasets/registry.h"
#include "models/registry/named_entries.h"
#include "models/registry/registry.h"
#include "strategies/registry.h"
#include "strategies/schedules/registry.h"
#include "tools/stratagem/parse.h"

namespace stratagem::tools {
namespace {

struct Entry {
  std::string name;
  std::string summary;
};

/// Returns the entries of a registry, by its functions.
template <class Find>
std::vector<Entry> entries_of(const std::vector<std::string>& names, Find find) {
  std::vector<Entry> entries;
  for (const std::string& name : names) entries.push_back({name, find(name).summary});
  return entries;
}

std::vector<Entry> device_entries() {
  const bench::MachineFacts facts = bench::machine_facts();
  std::vector<Entry> entries;
  for (const int core : bench::available_cores()) {
    entries.push_back({fmt::format("cpu:{}", entries.size()),
                       fmt::format("core {} of {}", core, facts.cpu_model)});
  }
  for (std::size_t index = 0; index < facts.gpu_models.size(); ++index) {
    entries.push_back({fmt::format("cuda:{}", index), facts.gpu_models[index]});
  }
  return entries;
}

/// Returns the programs that were built: they lie beside this executable.
std::vector<Entry> benchmark_entries() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<Entry> entries;
  for (const auto& [name, summary] : bench::benchmark_programs()) {
    if (fs::exists(folder / name)) entries.push_back({name, summary});
  }
  return entries;
}

using Listing = std::pair<std::string, std::function<std::vector<Entry>()>>;

const std::vector<Listing>& listings() {
  static const std::vector<Listing> all = {
      {"strategies",
       [] { return entries_of(strategies::strategy_names(), strategies::find_strategy); }},
      {"models", [] { return entries_of(models::model_names(), models::find_model); }},
      {"datasets", [] { return entries_of(datasets::dataset_names(), datasets::find_dataset); }},
      {"schedules",
       [] { return entries_of(schedules::schedule_names(), schedules::find_schedule); }},
      {"devices", device_entries},
      {"benchmarks", benchmark_entries}};
  return all;
}

std::vector<Listing> chosen(const std::string& what) {
  if (what.empty()) return listings();
  std::vector<std::string> names;
  for (const Listing& listing : listings()) {
    if (listing.first == what) return {listing};
    names.push_back(listing.first);
  }
  throw std::invalid_argument("list: " + models::unknown_name("list", what, names));
}

void print_text(const std::vector<Listing>& wanted) {
  for (const auto& [what, make_entries] : wanted) {
    if (wanted.size() > 1) fmt::print("{}\n", what);
    const std::vector<Entry> entries = make_entries();
    std::size_t width = 0;
    for (const Entry& entry : entries) width = std::max(width, entry.name.size());
    for (const Entry& entry : entries) {
      fmt::print("{}{:<{}}  {}\n", wanted.size() > 1 ? "  " : "", entry.name, width, entry.summary);
    }
  }
}

void print_json(const std::vector<Listing>& wanted) {
  nlohmann::ordered_json document;
  for (const auto& [what, make_entries] : wanted) {
    document[what] = nlohmann::ordered_json::array();
    for (const Entry& entry : make_entries()) {
      document[what].push_back({{"name", entry.name}, {"summary", entry.summary}});
    }
  }
  fmt::print("{}\n", document.dump(1));
}

}  // namespace

int list(const Arguments& arguments) {
  CLI::App app("Lists what this build contains and the devices of this machine.", "stratagem list");
  std::string what;
  bool as_json = false;
  app.add_option("WHAT", what,
                 "list only strategies, models, datasets, schedules, devices or benchmarks")
      ->type_name("");
  app.add_flag("--json", as_json, "print a JSON object of lists");
  if (!parse(app, arguments)) return 0;
  const std::vector<Listing> wanted = chosen(what);
  as_json ? print_json(wanted) : print_text(wanted);
  return 0;
}

}  // namespace stratagem::tools
