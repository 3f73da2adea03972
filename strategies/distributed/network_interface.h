// The network interface of Gloo's groups.
#pragma once

#include <string>

namespace stratagem::distributed {

/// Throws std::invalid_argument if the network interface of --interface (`by_option`, or empty) or
/// else of GLOO_SOCKET_IFNAME does not exist. The line names the option or variable and the
/// choices.
void require_interface(const std::string& by_option);

}  // namespace stratagem::distributed
