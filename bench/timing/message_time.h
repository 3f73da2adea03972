// Computes the time of one message from the time of a collective call.
#pragma once

#include <string>
#include <vector>

namespace stratagem::bench {

/// Divides the times of calls, in ms. A "send" call carries two messages, there and back; any other
/// call carries one.
std::vector<double> ms_of_a_message(std::vector<double> ms_of_a_call,
                                    const std::string& collective);

}  // namespace stratagem::bench
