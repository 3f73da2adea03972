// Registry: named entries that register themselves from their own files.
//
// An entry is any value with a `name`. Adding a variant means adding one file, of this tree or of a
// plug-in; a name that is not known is answered with the choices and the nearest of them. Knows
// nothing of models or tensors.
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stratagem::models {

/// Optimal string alignment distance: the fewest insertions, deletions, replacements and exchanges
/// of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that a misspelt name may mean, else empty. It is within an edit distance of a
/// third of the name's length, at least 1, and begins with the same letter; or it contains the
/// name. Leading dashes of options do not count.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// ': did you mean "resnet50"?', or `otherwise` where no candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view otherwise = "");

/// 'unknown model "resnet5": did you mean "resnet50"? choices: mlp, resnet50'.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& choices);

template <class Entry>
class Registry {
 public:
  /// `kind` is what an entry is called in messages: "model".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Throws std::logic_error when the name is taken.
  void add(Entry entry) {
    const std::string name = entry.name;
    if (!entries_.emplace(name, std::move(entry)).second) {
      throw std::logic_error("the " + kind_ + " \"" + name + "\" is taken; choose another name");
    }
  }

  /// Throws std::invalid_argument with the choices and the nearest one.
  const Entry& find(std::string_view name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw std::invalid_argument(unknown_name(kind_, name, names()));
    return found->second;
  }

  /// Sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }

  std::size_t size() const { return entries_.size(); }

 private:
  std::string kind_;
  std::map<std::string, Entry, std::less<>> entries_;
};

// What could not be registered, one line each. Static objects register, before main or while a
// plug-in is loaded, and an exception would end the program there: who starts it reads them here.
std::vector<std::string>& registration_errors();

// As Registry::add, for static objects.
template <class Entry>
void register_entry(Registry<Entry>& registry, Entry entry) {
  try {
    registry.add(std::move(entry));
  } catch (const std::logic_error& error) {
    registration_errors().emplace_back(error.what());
  }
}

}  // namespace stratagem::models
