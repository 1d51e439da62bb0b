// Trains a distogram model on one protein, sharded over the ranks of mpiexec. See README.md.

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <dtm/comm/agreement.hpp>
#include <dtm/comm/environment.hpp>
#include <dtm/comm/world.hpp>
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

/// Errors of reading must be everyone's, and all ranks must have read the same.
structure read_together(dtm::comm::world& world, options const& choice) {
  structure const protein =
      dtm::comm::agree(world, [&] { return read_structure(choice.file, choice.chain); });
  std::uint64_t const mine = protein.fingerprint();
  bool const same = dtm::comm::agree_on(world, mine).get() == mine;
  dtm::comm::agree(world, same, choice.file + ": this rank read other contents than rank 0");
  return protein;
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

outcome train_as(backend device, element dtype, task const& work) {
  if (device == backend::emulated) return train<dtm::emulated, float>(work);
#ifdef DTM_EXAMPLE_CUDA
  if (device == backend::cuda)
    return dtype == element::bf16 ? train<dtm::cuda, dtm::bf16>(work)
                                  : train<dtm::cuda, float>(work);
#endif
  switch (dtype) {
    case element::fp32:
      return train<dtm::host, float>(work);
    case element::fp64:
      return train<dtm::host, double>(work);
    case element::bf16:
      return train<dtm::host, dtm::bf16>(work);
  }
  throw dtm::argument_error("--dtype is not known");
}

/// Ten steps of both programs in fp64; 0 where they agree.
int verify(dtm::comm::world& world, options choice, features const& input) {
  choice.steps = verified_steps;
  task const work{choice, input, settings_of(choice), world, [](step_record const&) {}};
  trajectory const sharded = train_as(backend::host, element::fp64, work).path;
  bool good = true;
  if (world.rank() == 0) {
    difference const found = compare(sharded, serial_trajectory(input, work.settings));
    good = found.within_tolerance();
    std::printf(
        "mesh %dx%d against the serial program, fp64, %d steps\n"
        "largest relative difference: loss %.2e, parameters %.2e (%s); tolerance %.0e: %s\n",
        choice.cp0, choice.cp1, verified_steps, found.loss, found.parameters, found.worst.c_str(),
        verified_tolerance, good ? "passed" : "FAILED");
  }
  return dtm::comm::agree_on(world, good) ? 0 : 1;
}

run_report describe(options const& choice, structure const& protein, features const& input) {
  run_report result;
  result.structure = protein.name + " (" + choice.file + "), chains " + joined(protein.chains);
  result.tokens = input.tokens;
  result.padded = input.padded;
  result.resolved = protein.resolved();
  result.settings =
      detail::format("%d blocks, %d channels, %s, schedule %s, backend %s, Adam %g, seed %llu",
                     choice.blocks, choice.channels, to_string(choice.dtype),
                     to_string(choice.triangle), to_string(choice.backend), choice.learning_rate,
                     static_cast<unsigned long long>(choice.seed));
  result.mesh = detail::format("dp 1 x cp0 %d x cp1 %d", choice.cp0, choice.cp1);
  result.best_constant = best_constant_loss(input);
  return result;
}

/// Trains and writes what there is to see. Collective.
void train_and_report(dtm::comm::world& world, options const& choice, structure const& protein,
                      features const& input) {
  using clock = std::chrono::steady_clock;
  bool const first = world.rank() == 0;
  run_report report = describe(choice, protein, input);
  if (first) make_folder(choice.folder);  // before the training, which would be in vain
  if (first) {
    std::printf("%s\n%lld residues, mesh %s\n%s\n", report.structure.c_str(),
                static_cast<long long>(input.tokens), report.mesh.c_str(), report.settings.c_str());
    std::fflush(stdout);
  }
  outcome result;
  {
    progress shown(std::cout, isatty(STDOUT_FILENO) != 0, choice.steps, report.best_constant);
    auto const start = clock::now();
    auto const after_step = [&](step_record const& step) {
      report.steps.push_back(step);
      if (!first) return;
      shown.update(step.step, step.loss,
                   std::chrono::duration<double>(clock::now() - start).count());
    };
    result = train_as(choice.backend, choice.dtype,
                      {choice, input, settings_of(choice), world, after_step});
  }
  if (!first) return;
  report.final_loss = result.final_loss;
  report.contact_precision = contact_precision(input, result.contacts);
  report.ranks = result.ranks;
  report.contracts = result.contracts;
  report.shares = result.shares;
  write_losses(choice.folder + "/loss.csv", report.steps);
  write_png(choice.folder + "/contacts.png", contact_map(input, result.contacts));
  write_report(choice.folder + "/report.txt", report);
  std::printf(
      "loss %.4f at the start, %.4f after the last step; the best constant prediction has %.4f\n"
      "written to %s: report.txt, loss.csv, contacts.png (true | predicted)\n",
      report.steps.front().loss, report.final_loss, report.best_constant, choice.folder.c_str());
}

int run(dtm::comm::world& root, std::vector<std::string> const& arguments) {
  command_line const parsed = dtm::comm::agree(root, [&] {
    return parse_command_line(arguments, root.size(), DTM_EXAMPLE_DATA "/1a8o.cif");
  });
  if (parsed.help) {
    if (root.rank() == 0) std::cout << *parsed.help << std::flush;
    return 0;
  }
  options const& choice = parsed.values;
  structure const protein = read_together(root, choice);
  features const input = make_features(protein, token_multiple(choice.cp0, choice.cp1));

  dtm::comm::options settings = root.settings();
  if (choice.check_level) settings.level = dtm::comm::check_level(*choice.check_level);
  dtm::comm::world world(root, settings);
  return world.run([&] {
    if (choice.verify) return verify(world, choice, input);
    train_and_report(world, choice, protein, input);
    return 0;
  });
}

}  // namespace
}  // namespace example

int main(int count, char** values) {
  dtm::comm::environment mpi(count, values);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    dtm::comm::world root(MPI_COMM_WORLD);
    return example::run(root, std::vector<std::string>(values + 1, values + count));
  } catch (std::exception const& fault) {
    if (rank == 0) std::fprintf(stderr, "distogram: %s\n", fault.what());
    return 1;
  }
}
