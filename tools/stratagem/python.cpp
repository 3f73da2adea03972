// stratagem report, compare, history and schema, which the Python package performs.
#include "tools/stratagem/python.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "bench/config/plugins.h"
#include "strategies/ranks/launcher_environment.h"

namespace stratagem::tools {
namespace {

namespace fs = std::filesystem;

// Returns the roots of a source tree's build/bin/stratagem and of an installed bin/stratagem.
std::vector<fs::path> roots() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  return {folder.parent_path().parent_path(), folder.parent_path() / "share/stratagem"};
}

}  // namespace

std::string find_python() {
  if (const auto chosen = ranks::process_environment("STRATAGEM_PYTHON").value_or("");
      !chosen.empty())
    return chosen;
  for (const fs::path& root : roots()) {
    const fs::path python = root / ".venv/bin/python";
    if (::access(python.c_str(), X_OK) == 0) return python;
    std::ifstream recorded(root / "python");  // written by `cmake --install`
    std::string line;
    if (std::getline(recorded, line) && ::access(line.c_str(), X_OK) == 0) return line;
  }
  return "python3";
}

std::string find_reports_package() {
  for (const fs::path& root : roots()) {
    if (fs::exists(root / "reports/stratagem_reports/__main__.py")) return root / "reports";
  }
  return "";
}

void become_python(const std::string& subcommand, const Arguments& arguments) {
  const std::string python = find_python();
  const std::string package = find_reports_package();
  if (package.empty()) {
    throw std::invalid_argument(
        "the Python package stratagem_reports is neither in reports/ of a source tree around "
        "this executable nor in ../share/stratagem/reports; install with `cmake --install`");
  }
  const std::string others = ranks::process_environment("PYTHONPATH").value_or("");
  ::setenv("PYTHONPATH", (others.empty() ? package : package + ":" + others).c_str(), 1);
  Arguments words = {python, "-m", "stratagem_reports", subcommand};
  for (const std::string& word : bench::without_plugins(arguments)) words.push_back(word);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(pointers[0], pointers.data());
  throw std::invalid_argument(
      fmt::format("cannot start {}: {}; STRATAGEM_PYTHON names the Python to use", python,
                  std::generic_category().message(errno)));
}

int report(const Arguments& arguments) { become_python("report", arguments); }

int compare(const Arguments& arguments) { become_python("compare", arguments); }

int history(const Arguments& arguments) { become_python("history", arguments); }

int schema(const Arguments& arguments) { become_python("schema", arguments); }

}  // namespace stratagem::tools
