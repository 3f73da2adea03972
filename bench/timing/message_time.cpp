#include "bench/timing/message_time.h"

namespace stratagem::bench {

std::vector<double> ms_of_a_message(std::vector<double> ms_of_a_call, const std::string& collective,
                                    int in_flight) {
  const double messages = collective == "send" ? 2 : in_flight;
  for (double& time : ms_of_a_call) time /= messages;
  return ms_of_a_call;
}

}  // namespace stratagem::bench
