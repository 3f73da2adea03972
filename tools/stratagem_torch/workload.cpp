// stratagem export and stratagem prove: another program trains what a row trains, and is judged
// like the row's launches.
#include <ATen/core/ivalue.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/config/batches.h"
#include "bench/config/catalogue.h"
#include "bench/config/grid.h"
#include "bench/config/row_name.h"
#include "bench/config/run_options.h"
#include "bench/launch/exit_codes.h"
#include "bench/measure/environment.h"
#include "bench/measure/job_launch.h"
#include "bench/measure/preparation.h"
#include "bench/measure/proving.h"
#include "bench/proof/judge.h"
#include "bench/worker/session.h"
#include "bench/worker/worker_main.h"
#include "models/workload.h"
#include "reports/atomic_file.h"
#include "reports/file_reader.h"
#include "reports/json_fields.h"
#include "strategies/runtime/first_line.h"
#include "strategies/runtime/print_line.h"
#include "tools/stratagem/parse.h"
#include "training/loop/torch_file.h"

namespace stratagem::tools {
namespace {

constexpr std::int64_t most_reference_steps = 1000;

/// The options of one row, and a file.
struct RowAndFile {
  std::string file;
  bench::Config row;
  bool is_asked_for = false;  // false: --help was requested
};

/// `add_others` adds options behind those of the row.
RowAndFile parse_row_and_file(CLI::App& app, const Arguments& arguments, const std::string& file,
                              const bench::Catalogue& catalogue,
                              const std::function<void()>& add_others) {
  RowAndFile parsed;
  bench::RunOptions typed;
  app.add_option("FILE", parsed.file, file)->required()->option_text("(required)");
  bench::add_row_options(app, typed, catalogue,
                         [](const bench::Option& option) { return option.of_run; });
  bench::add_sources(app, typed);
  add_others();
  if (!parse(app, arguments)) return parsed;
  const auto rows = bench::make_grid(bench::select(typed), catalogue, bench::no_baselines);
  if (rows.size() != 1) {
    throw std::invalid_argument(
        fmt::format("these options make {} rows, but one is expected; give each option one value",
                    rows.size()));
  }
  parsed.row = rows.front();
  parsed.is_asked_for = true;
  return parsed;
}

using Dictionary = c10::impl::GenericDict;
Dictionary dictionary() { return Dictionary(c10::StringType::get(), c10::AnyType::get()); }

Dictionary state_of(const models::Workload& workload) {
  Dictionary state = dictionary();
  const models::Model model = workload.make_model();
  for (const auto& [name, tensor] : models::parameters(model.layers)) {
    state.insert(name, tensor.detach());
  }
  for (const auto& [name, tensor] : models::buffers(model.layers)) state.insert(name, tensor);
  return state;
}

void write_workload(const std::filesystem::path& path, const bench::Config& row) {
  const models::Workload workload(bench::workload_options(row));
  c10::impl::GenericList batches(c10::AnyType::get());
  const std::int64_t count = bench::different_batches(row, bench::elements_of(workload));
  for (std::int64_t index = 0; index < count; ++index) {
    const models::Batch batch = workload.make_batch(static_cast<std::uint64_t>(index));
    Dictionary entries = dictionary();
    // Tokens of one sample are views of the same memory.
    entries.insert("inputs", batch.inputs.clone());
    entries.insert("targets", batch.targets.clone());
    batches.push_back(entries);
  }
  Dictionary whole = dictionary();
  whole.insert("model", state_of(workload));
  whole.insert("batches", batches);
  training::write_torch_file(
      path, whole, [](std::size_t /*place*/, const at::Tensor& pickled) { return pickled; });
}

bench::Evidence read_evidence(const std::string& path) {
  const std::string text = reports::read_file(path, "a program's evidence");
  bench::Evidence evidence;
  try {
    evidence = reports::json_fields::read_as<bench::Evidence>(
        reports::json_fields::parse_distinct(text, path), path + ": evidence");
  } catch (const nlohmann::json::exception& error) {
    const std::string reason = runtime::first_line(error);  // "[the library's name] the error"
    throw std::invalid_argument(
        fmt::format("{}: not valid JSON: {}", path, reason.substr(reason.find("] ") + 2)));
  }
  const std::int64_t steps = std::ssize(evidence.loss);
  if (steps == 0 || steps > most_reference_steps) {
    throw std::invalid_argument(
        fmt::format("{}: loss: has {} steps, expected 1 to {}", path, steps, most_reference_steps));
  }
  for (const auto& [name, fingerprint] : evidence.state) {
    if (fingerprint.projected.size() == bench::Fingerprint::projections) continue;
    throw std::invalid_argument(fmt::format("{}: state.{}.projected: has {} numbers, expected {}",
                                            path, name, fingerprint.projected.size(),
                                            bench::Fingerprint::projections));
  }
  return evidence;
}

/// Removes the optimizer's entries from the reference if the evidence has none: a program need not
/// report its optimizer's state.
void leave_out_optimizer(bench::Trajectory& exact, const bench::Fingerprints& told) {
  const auto is_of_optimizer = [](const auto& entry) {
    return entry.first.starts_with("optimizer.");
  };
  if (std::ranges::any_of(told, is_of_optimizer)) return;
  for (bench::StateAt& each : exact.states) std::erase_if(each.state, is_of_optimizer);
}

/// If roundings are magnified, a program's own kernels may round by this factor more than
/// Stratagem's; convolutions by fewer multiplications do (Barabasz et al. 2020, "Error Analysis and
/// Improving the Accuracy of Winograd Convolution for Deep Neural Networks").
constexpr double coarser_kernels = 4;

/// Returns the verdict on another program's steps.
reports::Proof proof_of(const bench::Evidence& evidence, bench::Reference reference) {
  if (reference.magnifies) {
    reference.coarser *= coarser_kernels;
    reference.shaken_factor *= coarser_kernels;
  }
  leave_out_optimizer(reference.exact, evidence.state);
  return bench::judge(evidence, reference);
}

/// Returns the steps of one device, from the cache or computed now, like bench::reference_for().
bench::Reference reference_of(const bench::Config& row, const std::vector<std::int64_t>& lengths,
                              const std::vector<std::int64_t>& skipped,
                              const std::function<bool(const bench::Reference&)>& shows_enough,
                              const bench::Catalogue& catalogue) {
  const bench::Interrupt interrupt;
  bench::Progress progress(bench::Progress::style(false));
  const auto environment =
      bench::make_environment(catalogue, interrupt, progress, false, bench::worker_main);
  auto job = bench::job_about<bench::ReferenceJob>(row);
  job.lengths = lengths;
  job.skipped = skipped;
  progress.phase("computing the steps of one device", 1);
  progress.begin(bench::row_name(row, catalogue), "");
  auto launched = bench::reference_for(job, environment, shows_enough);
  progress.end(std::nullopt);
  progress.finish();
  bench::require_result("computing the steps of one device", launched.status, launched.error);
  return std::move(launched.result.reference);
}

}  // namespace

int export_workload(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app(
      "Writes a row's initial state and batches, so that another program can train the same work. "
      "Python's torch.load reads FILE. \"model\" is the initial state. \"batches\" lists n "
      "batches; step k trains on batch k modulo n. `stratagem prove` compares the program's steps "
      "with one device.",
      "stratagem export");
  std::int64_t steps = 0;
  const auto add_reference_steps = [&] {
    app.add_option("--reference-steps", steps,
                   fmt::format("number of steps of one device to compute now and to cache for "
                               "prove and run; at most {} [0]",
                               most_reference_steps))
        ->check(CLI::Range(std::int64_t{0}, most_reference_steps))
        ->option_text("N")
        ->group(bench::file_group);
  };
  const RowAndFile asked = parse_row_and_file(app, arguments, "file to write, such as workload.pt",
                                              catalogue, add_reference_steps);
  if (!asked.is_asked_for) return bench::exit_codes::done;
  reports::check_outputs({asked.file});
  // Comes first, because workers may be forks of this process, which has used no tensor yet.
  if (steps > 0) {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(steps));
    std::iota(lengths.begin(), lengths.end(), 1);
    reference_of(
        asked.row, lengths, {}, [](const bench::Reference&) { return true; }, catalogue);
  }
  write_workload(asked.file, asked.row);
  return bench::exit_codes::done;
}

int prove(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app(
      "Compares another program's training steps with one device, as `stratagem run` compares its "
      "timed steps. FILE is a JSON object. \"loss\" lists the loss of every step since the initial "
      "state. \"skipped\" lists the steps whose update was left out for an overflow. \"state\" has "
      "a fingerprint of each entry of the last state (docs/explanation/verification.md). The exit "
      "code is 1 if the program's steps differ from the row's.",
      "stratagem prove");
  const RowAndFile asked =
      parse_row_and_file(app, arguments, "evidence of the program, as JSON", catalogue, [] {});
  if (!asked.is_asked_for) return bench::exit_codes::done;
  const bench::Evidence evidence = read_evidence(asked.file);
  const std::string skip = bench::wrong_skip(asked.row, evidence);
  if (!skip.empty()) {
    runtime::print_line(stderr, fmt::format("{}: {}", asked.file, skip));
    return bench::exit_codes::mismatch;
  }
  const auto is_right = [&](const bench::Reference& reference) {
    return proof_of(evidence, reference).passed;
  };
  const reports::Proof proof = proof_of(
      evidence,
      reference_of(asked.row, {std::ssize(evidence.loss)}, evidence.skipped, is_right, catalogue));
  if (!proof.passed) {
    runtime::print_line(stderr, fmt::format("{}: {}", asked.file, proof.message));
    return bench::exit_codes::mismatch;
  }
  fmt::print(
      "{}; {} of {} entries would show a missing update; the error nearest to its bound is "
      "{:.2g}, and {:.2g} is allowed\n",
      proof.oracle, proof.shown, proof.entries, proof.max_relative_error, proof.tolerance);
  return bench::exit_codes::done;
}

}  // namespace stratagem::tools
