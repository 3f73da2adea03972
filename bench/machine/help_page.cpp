#include "bench/machine/help_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "bench/machine/terminal.h"

namespace stratagem::bench {
namespace {

constexpr std::size_t narrowest = 60;
constexpr std::size_t widest = 100;
constexpr std::size_t meaning_column = 30;

}  // namespace

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  std::istringstream paragraphs(text);
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    if (!lines.empty()) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    }
    std::istringstream words(paragraph);
    bool begins = true;
    for (std::string word; words >> word; begins = false) {
      if (!begins && column + 1 + word.size() > width) {
        lines += "\n" + std::string(indent, ' ');
        column = indent;
        begins = true;
      }
      lines += (begins ? "" : " ") + word;
      column += word.size() + (begins ? 0 : 1);
    }
  }
  return lines;
}

std::string HelpPage::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), width_, 0) + "\n\n";
}

std::string HelpPage::make_usage(const CLI::App* app, std::string name) const {
  return Formatter::make_usage(app, std::move(name)) + "\n";
}

std::string HelpPage::make_group(std::string group, bool is_positional,
                                 std::vector<const CLI::Option*> options) const {
  std::string page = wrapped(group, width_ - 1, 0) + ":\n";
  for (const CLI::Option* option : options) page += make_option(option, is_positional);
  return page + (is_positional ? "\n" : "");  // CLI11 separates the other groups
}

std::string HelpPage::make_option(const CLI::Option* option, bool is_positional) const {
  std::string line = "  " + make_option_name(option, is_positional) + make_option_opts(option);
  const std::string meaning = make_option_desc(option);
  if (meaning.empty()) return line + "\n";
  const bool has_room = line.size() + 2 <= meaning_column;
  line += has_room ? std::string(meaning_column - line.size(), ' ')
                   : "\n" + std::string(meaning_column, ' ');
  return line + wrapped(meaning, width_, meaning_column) + "\n";
}

std::string help_page(CLI::App& app) {
  const auto columns = static_cast<std::size_t>(terminal_width(stdout).value_or(widest));
  app.formatter(std::make_shared<HelpPage>(std::clamp(columns, narrowest, widest)));
  return app.help();
}

}  // namespace stratagem::bench
