// Workers that are a line of shell: they answer without a tensor.
#pragma once

#include <string>
#include <vector>

#include "bench/launch/job.h"

namespace stratagem::bench {

/// A job of so many ranks, which wait for one another for so many seconds; `text` stands in it.
inline Job some_job(int ranks = 1, double timeout = 120, const std::string& text = "toy") {
  VerifyJob job;
  job.header = {.ranks = ranks, .timeout = timeout};
  job.config.model = text;
  return job;
}

/// A worker that is a shell script: its job is in $job and its rank in $rank, where it has one; the
/// result goes to descriptor 4.
inline std::vector<std::string> script(const std::string& text) {
  return {"/bin/bash", "-c",
          R"(job=$(cat <&3); rank=$(sed 's/.*"rank":\([0-9]*\),.*/\1/' <<< "$job"); )" + text,
          "worker"};
}

/// Answers with its rank.
inline constexpr const char* say_ok = R"(printf '{"ok":true,"result":%s}' "$rank" >&4)";

}  // namespace stratagem::bench
