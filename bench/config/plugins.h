// Plug-ins: a user's shared libraries with models, schedules and strategies
// (docs/reference/plugins.md).
//
// Every process of a job loads them at its start, before anything reads a registry: their static
// objects register as those of this tree do. A plug-in is refused, in one line, when it was built
// against other headers, lacks a symbol, or registers a name that is taken.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace stratagem::bench {

struct Plugin {
  std::string path;      // absolute
  std::string identity;  // the file's name and a hash of its content: "libmine.so@1f0c..."
};

/// Loads what `arguments`, or a config file that they name, ask for with --plugin. Called once, by
/// main. Throws std::invalid_argument in one line, std::system_error for a file that cannot be
/// read.
void load_plugins(const std::vector<std::string>& arguments);

/// In the order of the command line.
const std::vector<Plugin>& loaded_plugins();

/// The files of each `--plugin FILE` or `--plugin=FILE` before a `--`, else those of the config
/// file.
std::vector<std::string> requested_plugins(const std::vector<std::string>& arguments);

/// The arguments without those options, for programs that know no plug-ins.
std::vector<std::string> without_plugins(const std::vector<std::string>& arguments);

/// Makes --plugin known to `app`; load_plugins has already read it.
void add_plugin_option(CLI::App& app);

/// The command line of a worker, which loads the same plug-ins.
std::vector<std::string> worker_command();

/// Throws std::invalid_argument unless this process has loaded these identities, a row's: files may
/// differ between hosts, or change while rows are measured.
void require_plugins(const std::vector<std::string>& identities);

}  // namespace stratagem::bench
