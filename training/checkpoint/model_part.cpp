#include "training/checkpoint/model_part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace stratagem::checkpoint {
namespace {

constexpr std::array<const char*, 4> usual_keys = {"model", "state_dict", "model_state_dict",
                                                   "module"};
/// The words that torch.compile, FSDP and checkpoint_wrapper put into a name.
constexpr std::array<std::string_view, 3> wrappers = {"_orig_mod.", "_fsdp_wrapped_module.",
                                                      "_checkpoint_wrapped_module."};
constexpr std::string_view may_be_missing = "num_batches_tracked";

std::string unwrapped(std::string name) {
  for (const std::string_view wrapper : wrappers) {
    for (auto at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper)) {
      name.erase(at, wrapper.size());
    }
  }
  return name;
}

struct Candidate {
  std::string where;  // empty, or ` under "model"`
  std::map<std::string, const Value*, std::less<>> values = {};
  bool twice = false;  // two of its names are equal without wrappers
};

Candidate candidate_of(std::string where, const Dictionary& dictionary) {
  Candidate candidate{std::move(where)};
  std::map<std::string, std::string, std::less<>> keys;
  for (const auto& [key, value] : dictionary.items) {
    const auto* text = key.as<std::string>();
    const std::string name = text == nullptr ? "" : unwrapped(*text);
    const auto [at, is_new] = keys.emplace(name, text == nullptr ? "" : *text);
    if (!is_new && text != nullptr && at->second != *text) candidate.twice = true;
    candidate.values.insert_or_assign(name, &value);
  }
  return candidate;
}

/// Returns the dictionaries under the usual keys, then the whole value.
std::vector<Candidate> candidates_of(const Value& whole) {
  std::vector<Candidate> candidates;
  for (const char* key : usual_keys) {
    const Value* found = whole.find(key);
    const auto* dictionary = found == nullptr ? nullptr : found->as<Dictionary>();
    if (dictionary == nullptr) continue;
    candidates.push_back(candidate_of(fmt::format(" under \"{}\"", key), *dictionary));
  }
  if (const auto* dictionary = whole.as<Dictionary>()) {
    candidates.push_back(candidate_of("", *dictionary));
  }
  return candidates;
}

const PickledTensor* tensor_of(const Candidate& candidate, const std::string& name) {
  const auto found = candidate.values.find(name);
  return found == candidate.values.end() ? nullptr : found->second->as<PickledTensor>();
}

/// Returns the prefix before the candidate's first required name.
std::string prefix_of(const Candidate& candidate, std::span<const std::string> wanted) {
  const auto first = std::ranges::find_if(
      wanted, [](const std::string& name) { return !name.ends_with(may_be_missing); });
  if (first == wanted.end() || candidate.values.contains(*first)) return "";
  for (const auto& [name, value] : candidate.values) {
    if (name.ends_with("." + *first) && value->as<PickledTensor>() != nullptr) {
      return name.substr(0, name.size() - first->size());
    }
  }
  return "";
}

std::string names_text(const Candidate& candidate) {
  constexpr std::size_t most = 3;
  std::vector<std::string> names;
  for (const auto& [name, value] : candidate.values) {
    if (names.size() == most) break;
    names.push_back(fmt::format("\"{}\"", name.empty() ? "a key that is not a string" : name));
  }
  if (names.empty()) return "nothing";
  const std::size_t more = candidate.values.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

/// Returns the wanted tensors, or the reason why the candidate is not the model's.
std::variant<TensorsByName, std::string> taken(const Candidate& candidate,
                                               std::span<const std::string> wanted) {
  if (candidate.twice) {
    return std::string("two of its tensors have one name without wrapper prefixes");
  }
  const std::string begin = prefix_of(candidate, wanted);
  TensorsByName tensors;
  for (const std::string& name : wanted) {
    const PickledTensor* tensor = tensor_of(candidate, begin + name);
    if (tensor != nullptr) {
      tensors.emplace(name, tensor);
    } else if (!name.ends_with(may_be_missing)) {
      return fmt::format("it has no tensor \"{}\"{}; it has {}", begin + name, candidate.where,
                         names_text(candidate));
    }
  }
  for (const auto& [name, value] : candidate.values) {
    if (name.starts_with(begin) && tensors.contains(name.substr(begin.size()))) continue;
    return fmt::format("it has {} entries{}, expected {}; the model has no \"{}\"",
                       candidate.values.size(), candidate.where, tensors.size(), name);
  }
  return tensors;
}

}  // namespace

TensorsByName model_tensors(const Value& whole, std::span<const std::string> wanted) {
  std::optional<TensorsByName> found;
  std::string where;
  std::string why;
  for (const Candidate& candidate : candidates_of(whole)) {
    auto result = taken(candidate, wanted);
    if (const auto* reason = std::get_if<std::string>(&result)) {
      if (why.empty()) why = *reason;
      continue;
    }
    if (found) {
      throw std::invalid_argument(
          fmt::format("has two models{} and{}; save only one", where, candidate.where));
    }
    found = std::get<TensorsByName>(std::move(result));
    where = candidate.where;
  }
  if (found) return *std::move(found);
  if (why.empty()) {
    why = fmt::format("it has no tensor \"{}\"; it is not a dictionary of tensors",
                      wanted.empty() ? "" : wanted.front());
  }
  throw std::invalid_argument("is of another model: " + why);
}

}  // namespace stratagem::checkpoint
