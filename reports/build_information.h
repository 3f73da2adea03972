// What this executable was built from. The values are filled in by the build (cmake/).
#pragma once

#include <string>

namespace stratagem::reports {

struct BuildInformation {
  std::string version;
  std::string git_commit;  // twelve digits, "-modified" behind them for a changed tree
  std::string build_type;
  std::string compiler;
  std::string compiler_flags;  // that all files share; some folders have more
  std::string sanitizers;      // empty for none
  bool cuda = false;
  std::string cuda_version;  // of the headers; empty without the CUDA backend
  std::string nccl_version;
  std::string plugin_interface;  // what a plug-in must have been built against: versions, headers
};

BuildInformation build_information();

/// What stands before the interface in a plug-in's file.
std::string plugin_interface_mark();

}  // namespace stratagem::reports
