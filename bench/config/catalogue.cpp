#include "bench/config/catalogue.h"

#include <algorithm>

#include "bench/config/plugins.h"

namespace stratagem::bench {
namespace {

template <class Entry>
const Entry* find(const std::vector<Entry>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Entry::name);
  return found == all.end() ? nullptr : &*found;
}

template <class Entry>
std::vector<Entry> registered() {
  std::vector<Entry> all;
  for (const std::string& name : Entry::registry().names()) {
    all.push_back(Entry::registry().find(name));
  }
  return all;
}

}  // namespace

const strategies::StrategyEntry* Catalogue::strategy(std::string_view name) const {
  return find(strategies, name);
}

const models::ModelEntry* Catalogue::model(std::string_view name) const {
  return find(models, name);
}

const schedules::ScheduleEntry* Catalogue::schedule(std::string_view name) const {
  return find(schedules, name);
}

Catalogue registered_catalogue() {
  Catalogue catalogue{.strategies = registered<strategies::StrategyEntry>(),
                      .models = registered<models::ModelEntry>(),
                      .schedules = registered<schedules::ScheduleEntry>()};
  for (const Plugin& plugin : loaded_plugins()) catalogue.plugins.push_back(plugin.identity);
  return catalogue;
}

}  // namespace stratagem::bench
