// Registry: named entries that register themselves from their own files:
//   STRATAGEM_REGISTER(ModelEntry{...});
//
// An entry is any value with a `name` and a static function `registry`. A variant needs one file,
// of this tree or of a plug-in. The error for an unknown name lists the choices and the nearest
// one. This file does not depend on models or tensors.
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stratagem::models {

/// Returns the optimal string alignment distance: the fewest insertions, deletions, replacements
/// and exchanges of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate for a misspelt name, or an empty string. It is within an edit distance of
/// a third of the name's length, at least 1, and begins with the same letter; or it contains the
/// name. Leading dashes of options do not count.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

/// Returns ': did you mean "resnet50"?', or `otherwise` if no candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view otherwise = "");

/// Returns 'unknown model "resnet5": did you mean "resnet50"? choices: mlp, resnet50'.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& choices);

template <class Entry>
class Registry {
 public:
  /// `kind` names an entry in messages: "model".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// Throws std::logic_error if the name is taken or the entry is incomplete (Entry::lacks(), if it
  /// exists).
  void add(Entry entry) {
    if constexpr (requires { entry.lacks(); }) {
      const std::string lacks = entry.lacks();
      if (!lacks.empty()) {
        throw std::logic_error("the " + kind_ + " \"" + entry.name + "\" lacks " + lacks);
      }
    }
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

  /// Returns the sorted names.
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

// Returns the errors of registrations, one line each, for the loader of plug-ins. An exception of a
// static object, before main or while a plug-in is loaded, would end the program.
std::vector<std::string>& registration_errors();

/// Adds an entry to the registry of its kind, Entry::registry(). Returns true, so that a constant
/// can hold it.
template <class Entry>
bool register_entry(Entry entry) {
  try {
    Entry::registry().add(std::move(entry));
  } catch (const std::logic_error& error) {
    registration_errors().emplace_back(error.what());
  }
  return true;
}

}  // namespace stratagem::models

/// Registers an entry before main, or when its plug-in is loaded. One unit may hold several, so
/// each has its own name.
#define STRATAGEM_REGISTER_AS(number, ...)                   \
  namespace {                                                \
  [[maybe_unused]] const bool entry_is_registered_##number = \
      ::stratagem::models::register_entry(__VA_ARGS__);      \
  }                                                          \
  static_assert(true)
#define STRATAGEM_REGISTER_EXPANDED(number, ...) STRATAGEM_REGISTER_AS(number, __VA_ARGS__)
#define STRATAGEM_REGISTER(...) STRATAGEM_REGISTER_EXPANDED(__COUNTER__, __VA_ARGS__)
