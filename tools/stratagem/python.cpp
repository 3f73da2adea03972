// stratagem report, compare, history and schema, which the Python package performs.
#include "tools/stratagem/python.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

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

constexpr int cannot_execute = 126;  // the shell's exit codes
constexpr int not_found = 127;
constexpr std::size_t most_text = 64 * 1024;  // a program that prints more is ended

/// Returns the word as the shell reads it unchanged.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) {
    if (letter == '\'') {
      text += "'\\''";
    } else {
      text += letter;
    }
  }
  return text + "'";
}

/// Returns the interpreter that the user chose; empty if none.
std::string chosen_python() { return ranks::process_environment("STRATAGEM_PYTHON").value_or(""); }

/// Throws std::invalid_argument unless a chosen program is a Python that can run the package. A
/// program that does not start passes: its start names the reason.
void require_python(const std::string& chosen) {
  const PythonAnswer answer =
      ask_python(chosen, "import sys; print('Python', sys.version_info >= (3, 10))");
  if (answer.exit_code == cannot_execute || answer.exit_code == not_found) return;
  if (answer.text.ends_with("Python True")) return;
  throw std::invalid_argument(
      fmt::format("STRATAGEM_PYTHON={}: this program is not Python 3.10 or newer; name "
                  "one, or unset the variable",
                  chosen));
}

}  // namespace

PythonAnswer ask_python(const std::string& python, const std::string& program) {
  const std::string command =
      fmt::format("timeout 60 {} -c {} 2>&1 </dev/null", quoted(python), quoted(program));
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {.text = "", .exit_code = cannot_execute};
  PythonAnswer answer;
  std::array<char, 4096> buffer{};
  while (answer.text.size() < most_text) {
    const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe);
    if (count == 0) break;
    answer.text.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  while (answer.text.ends_with('\n')) answer.text.pop_back();
  return answer;
}

std::string find_python() {
  if (const std::string chosen = chosen_python(); !chosen.empty()) return chosen;
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
  if (!chosen_python().empty()) require_python(python);
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
