// Maps exceptions of main() to one line on stderr and an exit code.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace stratagem::bench {

namespace exit_codes {
inline constexpr int done = 0;
inline constexpr int mismatch = 1;
inline constexpr int usage = 2;
inline constexpr int nothing_matched = 3;
inline constexpr int lost = 4;  // a rank failed, hung or was lost
inline constexpr int interrupted = 130;
}  // namespace exit_codes

/// std::invalid_argument and std::system_error (a file) are usage, Interrupted is 130, any other is
/// a loss.
int exit_code_of(const std::exception& error);

/// Calls `write`. Files that cannot be written behind a measurement are no usage but a loss: their
/// places were there before it, and are full now.
void write_what_was_measured(const std::function<void()>& write);

/// Returns what `body` returns, or exit_code_of() its exception, which is told as "PROGRAM: LINE"
/// on standard error.
int run_main(const std::string& program, const std::function<int()>& body);

}  // namespace stratagem::bench
