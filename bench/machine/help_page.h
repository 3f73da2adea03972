// The page that --help prints.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace stratagem::bench {

/// Lays a help page out for a width in columns: one option a line, its meaning wrapped beside it.
class HelpPage : public CLI::Formatter {
 public:
  explicit HelpPage(std::size_t width) : width_(width) {}

  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;

 private:
  std::size_t width_;
};

/// Returns the help of a command for the standard output: as wide as its terminal, up to 100
/// columns.
std::string help_page(CLI::App& app);

/// Returns `text` in lines of at most `width` columns, broken at spaces; lines after the first
/// begin with `indent` spaces. A word that is longer than a line stays whole. Line breaks in `text`
/// stay.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace stratagem::bench
