// Trains a distogram model on one protein, sharded over the ranks of mpiexec. See README.md.

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <dtm/core/errors.hpp>

#include "contact_map.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "structure.hpp"
#include "training.hpp"
#include "verify.hpp"

namespace example {
namespace {

struct ranks {
  int rank = 0, size = 1;
  bool first() const { return rank == 0; }
};

/// Runs on every rank what can fail on one alone, such as reading a file; all continue or all throw. The text is
/// that of the lowest rank that failed.
template <class F>
auto together(F&& risky) {
  decltype(risky()) result{};
  std::exception_ptr fault;
  try {
    result = risky();
  } catch (...) {
    fault = std::current_exception();
  }
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int failed = fault ? rank : size, first = size;
  MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (fault) std::rethrow_exception(fault);
  if (first < size) throw dtm::peer_failed(first, "rank " + std::to_string(first) + " failed");
  return result;
}

std::string joined(std::vector<std::string> const& names) {
  std::string result;
  for (auto const& name : names) result += (result.empty() ? "" : ", ") + name;
  return result;
}

training_settings settings_of(options const& choice) {
  training_settings result;
  result.blocks = choice.blocks;
  result.channels = choice.channels;
  result.single_channels = choice.channels;
  result.seed = choice.seed;
  result.learning_rate = choice.learning_rate;
  return result;
}

outcome train_as(element dtype, task const& work) {
  switch (dtype) {
    case element::fp32:
      return train<float>(work);
    case element::fp64:
      return train<double>(work);
    case element::bf16:
      break;
  }
  throw dtm::argument_error("--dtype bf16 is not compiled yet");
}

/// Ten steps of both programs in fp64; 0 where they agree.
int verify(options choice, features const& input, ranks here) {
  choice.steps = verified_steps;
  task const work{choice, input, settings_of(choice), MPI_COMM_WORLD, [](step_record const&) {}};
  trajectory const sharded = train_as(element::fp64, work).path;
  int good = 1;
  if (here.first()) {
    difference const found = compare(sharded, serial_trajectory(input, work.settings));
    good = found.within_tolerance();
    std::printf("mesh %dx%d against the serial program, fp64, %d steps\n"
                "largest relative difference: loss %.2e, parameters %.2e (%s); tolerance %.0e: %s\n",
                choice.cp0, choice.cp1, verified_steps, found.loss, found.parameters, found.worst.c_str(),
                verified_tolerance, good ? "passed" : "FAILED");
  }
  MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return good ? 0 : 1;
}

run_report describe(options const& choice, structure const& protein, features const& input) {
  run_report result;
  result.structure = protein.name + " (" + choice.file + "), chains " + joined(protein.chains);
  result.tokens = input.tokens;
  result.padded = input.padded;
  result.resolved = protein.resolved();
  result.settings = detail::format("%d blocks, %d channels, %s, schedule %s, Adam %g, seed %llu, check level %d",
                                   choice.blocks, choice.channels, to_string(choice.dtype),
                                   to_string(choice.triangle), choice.learning_rate,
                                   (unsigned long long)choice.seed, choice.check_level);
  result.mesh = detail::format("dp 1 x cp0 %d x cp1 %d", choice.cp0, choice.cp1);
  result.best_constant = best_constant_loss(input);
  return result;
}

int run(std::vector<std::string> const& arguments, ranks here) {
  command_line const parsed = parse_command_line(arguments, here.size, DTM_EXAMPLE_DATA "/1a8o.cif");
  if (parsed.help) {
    if (here.first()) std::cout << *parsed.help << std::flush;
    return 0;
  }
  options const& choice = parsed.values;
  structure const protein = together([&] { return read_structure(choice.file, choice.chain); });
  features const input = make_features(protein, token_multiple(choice.cp0, choice.cp1));
  if (choice.verify) return verify(choice, input, here);

  run_report report = describe(choice, protein, input);
  together([&] {
    if (here.first()) make_folder(choice.folder);
    return true;
  });
  if (here.first()) {
    std::printf("%s\n%lld residues, mesh %s\n%s\n", report.structure.c_str(), (long long)input.tokens,
                report.mesh.c_str(), report.settings.c_str());
    std::fflush(stdout);
  }
  using clock = std::chrono::steady_clock;
  outcome result;
  {
    progress shown(std::cout, isatty(STDOUT_FILENO) != 0, choice.steps, report.best_constant);
    auto const start = clock::now();
    auto const after_step = [&](step_record const& step) {
      report.steps.push_back(step);
      if (here.first()) {
        shown.update(step.step, step.loss, std::chrono::duration<double>(clock::now() - start).count());
      }
    };
    result = train_as(choice.dtype, {choice, input, settings_of(choice), MPI_COMM_WORLD, after_step});
  }
  together([&] {
    if (!here.first()) return true;
    report.final_loss = result.final_loss;
    report.contact_precision = contact_precision(input, result.contacts);
    report.ranks = result.ranks;
    report.contracts = result.contracts;
    write_losses(choice.folder + "/loss.csv", report.steps);
    write_png(choice.folder + "/contacts.png", contact_map(input, result.contacts));
    write_report(choice.folder + "/report.txt", report);
    std::printf("loss %.4f at the start, %.4f at the end; the best constant prediction has %.4f\n"
                "written to %s: report.txt, loss.csv, contacts.png (true | predicted)\n",
                report.steps.front().loss, report.final_loss, report.best_constant, choice.folder.c_str());
    return true;
  });
  return 0;
}

}  // namespace
}  // namespace example

int main(int count, char** values) {
  MPI_Init(&count, &values);
  example::ranks here;
  MPI_Comm_rank(MPI_COMM_WORLD, &here.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &here.size);
  int status = 1;
  try {
    status = example::run(std::vector<std::string>(values + 1, values + count), here);
  } catch (std::exception const& fault) {
    if (here.first()) std::fprintf(stderr, "distogram: %s\n", fault.what());
  }
  MPI_Finalize();
  return status;
}
