// What a call of a collective says of one message.
#pragma once

#include <string>
#include <vector>

namespace stratagem::bench {

/// A "send" goes there and back in a call; of others a call makes `in_flight` at a time.
std::vector<double> ms_of_a_message(std::vector<double> ms_of_a_call, const std::string& collective,
                                    int in_flight);

}  // namespace stratagem::bench
