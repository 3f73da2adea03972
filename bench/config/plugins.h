// Plug-ins: a user's shared libraries with models, schedules and strategies
// (docs/reference/plugins.md).
// A file with a model (`--model script:FILE`) or a schedule (`--schedule csv:FILE`) is loaded as a
// plug-in is.
//
// Every process of a job loads them at its start, before anything reads a registry: their static
// objects register like those of this tree. A plug-in is refused, in one line, if it was built
// against other headers, lacks a symbol, or registers a name that is taken.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace stratagem::bench {

struct Plugin {
  std::string path;      // absolute; of another file as it was given, "script:FILE"
  std::string identity;  // the file's name and a hash of its content: "libmine.so@1f0c..."
};

/// Loads the plug-ins that `arguments`, or their config file, name with --plugin. main() calls it
/// once. Throws std::invalid_argument in one line, and std::system_error for a file that cannot be
/// read.
void load_plugins(const std::vector<std::string>& arguments);

/// Returns them in the order of the command line.
const std::vector<Plugin>& loaded_plugins();

/// Returns the files of each `--plugin FILE` or `--plugin=FILE` before a `--`, else those of the
/// config file; then each `script:FILE` among the models and `csv:FILE` among the schedules.
std::vector<std::string> requested_plugins(const std::vector<std::string>& arguments);

/// Returns the arguments without --plugin, for programs without plug-ins.
std::vector<std::string> without_plugins(const std::vector<std::string>& arguments);

/// Adds --plugin to `app`, which ignores it: load_plugins() has already read it.
void add_plugin_option(CLI::App& app);

/// Returns the command line of a worker, which loads the same plug-ins.
std::vector<std::string> worker_command();

/// Throws std::invalid_argument unless this process has loaded the row's plug-ins: files may differ
/// between hosts, or change while rows are measured.
void require_plugins(const std::vector<std::string>& identities);

}  // namespace stratagem::bench
