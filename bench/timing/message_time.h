// Time of one message, computed from the time of a collective call.
#pragma once

#include <string>
#include <vector>

namespace stratagem::bench {

/// Divides the times of calls, in ms. A "send" call carries two messages, there and back; any other
/// call carries `in_flight` of them.
std::vector<double> ms_of_a_message(std::vector<double> ms_of_a_call, const std::string& collective,
                                    int in_flight);

}  // namespace stratagem::bench
