#include "bench/google_benchmark/library_main.h"

#include <benchmark/benchmark.h>

#include <stdexcept>
#include <vector>

#include "bench/google_benchmark/flags.h"
#include "bench/launch/exit_codes.h"
#include "reports/atomic_file.h"

namespace stratagem::bench {

int library_main(int argc, char** argv, const std::string& program) {
  return run_main(program, [&argc, argv] {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const BenchmarkFlags flags = parse_benchmark_flags(arguments, OtherFlags::kept);
    matching(flags.filter, {});  // refuses a broken expression
    reports::check_outputs({flags.out});
    benchmark::Initialize(&argc, argv);
    if (argc > 1) {  // what the library did not take
      const std::string left = argv[1];
      const std::string flag = left.substr(0, left.find('='));
      if (is_known_flag(flag)) return exit_codes::usage;  // the library printed what is wrong
      throw std::invalid_argument(unknown_flag(flag));
    }
    const bool matched = benchmark::RunSpecifiedBenchmarks() > 0;
    return matched ? exit_codes::done : exit_codes::nothing_matched;
  });
}

}  // namespace stratagem::bench
