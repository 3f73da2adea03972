// What LibTorch prints of its own accord.
#pragma once

namespace stratagem::distributed {

/// Keeps c10's warnings and stack traces off stderr: what went wrong is said in one line, by
/// whoever catches the exception that comes with them. TORCH_CPP_LOG_LEVEL=INFO brings them back.
void quiet_library_log();

}  // namespace stratagem::distributed
