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

/// Returns `usage` for std::invalid_argument and std::system_error (a file), `interrupted` for
/// Interrupted, and `lost` for others.
int exit_code_of(const std::exception& error);

/// Calls `write`. A file that cannot be written after a measurement is a loss, not wrong usage: its
/// place was there before, and is full now. `left` follows the error's text; it names what holds
/// the measurement now. Throws std::runtime_error.
void write_what_was_measured(const std::function<void()>& write, const std::string& left = {});

/// Returns what `body` returns, or exit_code_of() its exception, which it prints as "PROGRAM: LINE"
/// on standard error. Standard output that cannot be written is a loss. A write beyond RLIMIT_FSIZE
/// ends no process from here on.
int run_main(const std::string& program, const std::function<int()>& body);

}  // namespace stratagem::bench
