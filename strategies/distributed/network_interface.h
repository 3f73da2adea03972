// Which network interface Gloo's groups use.
#pragma once

#include <string>

namespace stratagem::distributed {

/// Throws std::invalid_argument where the network interface that --interface (`by_option`, or
/// empty) or else GLOO_SOCKET_IFNAME names is not there. The line has the one that names it, and
/// the choices.
void require_interface(const std::string& by_option);

}  // namespace stratagem::distributed
