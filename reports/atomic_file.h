// Writes files whole or not at all: beside the target, flushed to the disk, then renamed.
//
// A reader, or a run that is resumed after a crash, never reads half a results file. "-" is the
// standard output; devices and pipes (/dev/null, /dev/stdout) are written in place, because a
// rename would replace them. A symbolic link keeps its target.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stratagem::reports {

/// Throws std::system_error with one line that names the path.
void write_file_atomically(const std::string& path, std::string_view text);

/// Checks before a long run that write_file_atomically(path, ...) will find its place: creates a
/// file beside it and removes that. Throws std::system_error like the write.
void check_writable(const std::string& path);

/// Checks the outputs of one command; an empty path is none. Throws std::invalid_argument if two of
/// them are one file, of which the later would replace the earlier.
void check_outputs(const std::vector<std::string>& paths);

}  // namespace stratagem::reports
