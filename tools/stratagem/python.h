// Runs the Python package of charts and reports, which lies in the source tree or beside an
// installed executable.
#pragma once

#include <string>

#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {

/// Returns the interpreter: $STRATAGEM_PYTHON, else that of the venv beside the tree or of the one
/// that the installation names, else python3 on PATH.
std::string find_python();

/// The output of a program in Python, with its errors, and its exit code.
struct PythonAnswer {
  std::string text;
  int exit_code = 0;  // 126 or 127 if Python did not start
};

/// Ends a program that takes longer than a minute.
PythonAnswer ask_python(const std::string& python, const std::string& program);

/// Returns the folder of the package stratagem_reports; empty if there is none.
std::string find_reports_package();

/// Becomes `python -m stratagem_reports SUBCOMMAND ARGUMENTS`; does not return. Throws
/// std::invalid_argument with a remedy if there is no package, if STRATAGEM_PYTHON names no Python,
/// or if Python does not start.
[[noreturn]] void become_python(const std::string& subcommand, const Arguments& arguments);

}  // namespace stratagem::tools
