#include "reports/anonymous.h"

#include <regex>
#include <set>
#include <string>
#include <variant>

namespace stratagem::reports {
namespace {

/// Removes "~/", "../" and the like. Names of rows and meshes have slashes, too; they
/// begin with a word.
std::string without_folders(const std::string& text) {
  static const std::regex folders(
      R"re((^|[\s=,:'"(])(?:~[^\s/]*|\.{1,2})?/(?:[^\s/,:'"()]*/)*(?=[^\s/]))re");
  return std::regex_replace(text, folders, "$1");
}

/// Does the same for options whose values are files, whatever their beginning.
std::string without_folders_of_options(const std::string& command_line) {
  static const std::regex folders(
      R"re((--(?:out|trace|config|plugin|data|benchmark_out)[= ])\S*/)re");
  return std::regex_replace(without_folders(command_line), folders, "$1");
}

class Cleaner {
 public:
  explicit Cleaner(const ResultFile& results) {
    hosts_.insert(results.context.host_name);
    for (const Row& row : results.rows) {
      for (const Repetition& repetition : row.repetitions) {
        if (repetition.error) hosts_.insert(repetition.error->host);
      }
    }
    hosts_.erase("");
  }

  void clean(std::string& text) const {
    for (const std::string& host : hosts_) {
      for (std::size_t at = text.find(host); at != std::string::npos; at = text.find(host, at)) {
        const std::size_t end = at + host.size();
        if (is_part(text, at - 1) || is_part(text, end)) {
          at = end;
        } else {
          text.replace(at, host.size(), "HOST");
        }
      }
    }
    text = without_folders(text);
  }

  void clean(Values& values) const {
    for (auto& [name, value] : values) {
      if (auto* text = std::get_if<std::string>(&value)) clean(*text);
    }
  }

  void clean(Repetition& repetition) const {
    if (repetition.verification) clean(repetition.verification->message);
    if (repetition.proof) clean(repetition.proof->message);
    if (!repetition.error) return;
    repetition.error->host.clear();
    clean(repetition.error->message);
    clean(repetition.error->last_action);
  }

 private:
  /// Returns true if the character belongs to a longer name. Positions beyond the text do not.
  static bool is_part(const std::string& text, std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                text[at] == '_' || text[at] == '-');
  }

  std::set<std::string> hosts_;
};

}  // namespace

void anonymise(ResultFile& results) {
  const Cleaner cleaner(results);
  Context& context = results.context;
  context.host_name.clear();
  cleaner.clean(context.executable);
  context.command_line = without_folders_of_options(context.command_line);
  cleaner.clean(context.command_line);
  std::erase_if(context.software, [](const auto& field) { return field.first == "environment"; });
  for (Values* values : {&context.software, &context.hardware, &context.calibration}) {
    cleaner.clean(*values);
  }
  for (std::string& line : context.disturbances) cleaner.clean(line);
  for (Row& row : results.rows) {
    cleaner.clean(row.config);
    for (Repetition& repetition : row.repetitions) cleaner.clean(repetition);
  }
}

}  // namespace stratagem::reports
