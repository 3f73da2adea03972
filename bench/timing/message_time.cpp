#include "bench/timing/message_time.h"

namespace stratagem::bench {

std::vector<double> ms_of_a_message(std::vector<double> ms_of_a_call,
                                    const std::string& collective) {
  const double messages = collective == "send" ? 2 : 1;
  for (double& time : ms_of_a_call) time /= messages;
  return ms_of_a_call;
}

}  // namespace stratagem::bench
