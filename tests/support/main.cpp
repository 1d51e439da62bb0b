// The test runner: Catch2 under mpiexec. What it adds to Catch2's own session:
//
//  - MPI starts and ends outside Catch2; the exit status is the same on every rank.
//  - Every rank runs the same cases in the same order, or none at all. Zero cases fail.
//  - Every case has a fresh world. A rank that leaves a case by a failed REQUIRE or by an exception tells
//    its peers through that world; they leave too, and everybody meets again before the next case.
//  - Rank 0 writes as it goes; of the other ranks only the failures are shown, in rank order, after the
//    case. One line of totals closes the run.
//  - exit, signals and absent ranks end the job with a sentence that names rank and case.

#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_NO_POSIX_SIGNALS  // a handler that reports through the ranks would wait for them
#include "catch.hpp"
#include "control.hpp"
#include "runner.hpp"

#if DTM_CATCH2_VERSION == 3
#include <catch2/internal/catch_test_case_registry_impl.hpp>
#endif

#include <dtm/comm/world.hpp>
#include <dtm/core/errors.hpp>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DTM_RUNNER_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define DTM_RUNNER_ADDRESS_SANITIZER 1
#endif
#ifdef DTM_RUNNER_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

namespace dtm::testing {
namespace {

enum exit_code {
  all_passed = 0,
  some_failed = 1,
  nothing_ran = 2,
  some_skipped = 77,
  left_early = 87
};

/// What the runner knows about this process. One per program; Catch2 makes its listeners itself.
struct state {
  control* ranks = nullptr;
  comm::options settings;
  comm::world* root = nullptr;         // carries no data; the worlds of the cases are made from it
  std::unique_ptr<comm::world> world;  // of the running case
  std::exception_ptr no_world;         // why there is none
  // the running case
  std::string name;
  int run = 0;               // Catch2 enters a case once per path through its sections
  bool failed_here = false;  // an assertion failed on this rank
  bool followed = true;      // ... but every failure only followed another rank's
  bool timed_out = false;  // ... because a deadline passed: an absent rank is not waited for again
  bool failed = false;     // known on all ranks
  bool skipped = false;
  std::string complaint;
  // the whole run
  int cases = 0, cases_failed = 0, cases_skipped = 0;
  std::uint64_t assertions = 0;
  std::vector<std::string> failures;  // "case (ranks 1, 2)", rank 0 only
  bool finished = false;
};
state the;  // NOLINT: see above

// ---- output ------------------------------------------------------------------------------------------
/// Stands in for std::cout: rank 0 passes through until Catch2's own totals, which know one rank only;
/// the others keep everything for the end of the case.
class gate : public std::streambuf {
 public:
  explicit gate(bool keep) : keep_(keep), behind_(std::cout.rdbuf(this)) {}
  ~gate() override { std::cout.rdbuf(behind_); }
  void close() { closed_ = true; }
  std::string take() { return std::exchange(kept_, {}); }

 private:
  int overflow(int c) override {
    if (c == traits_type::eof()) return 0;
    char const one = static_cast<char>(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(char const* text, std::streamsize count) override {
    if (closed_) return count;
    if (!keep_) return behind_->sputn(text, count);
    kept_.append(text, static_cast<std::size_t>(count));
    return count;
  }
  int sync() override { return keep_ ? 0 : behind_->pubsync(); }

  bool keep_, closed_ = false;
  std::string kept_;
  std::streambuf* behind_;
};
gate* output = nullptr;

// ---- processes that do not come back -----------------------------------------------------------------
char last_words[512] = "";  // a signal handler may not build strings

void remember_where() {
  std::snprintf(last_words, sizeof last_words, " on rank %d in case \"%.400s\"\n",
                the.ranks->rank(), the.name.c_str());
}

/// One write, so that the ranks' sentences do not mix.
void say_where(char const* what) {
  static char sentence[600];
  std::size_t const head = std::min(std::strlen(what), std::size_t(80));
  std::memcpy(sentence, what, head);
  std::memcpy(sentence + head, last_words, std::strlen(last_words));
  [[maybe_unused]] auto written = write(STDERR_FILENO, sentence, head + std::strlen(last_words));
}

extern "C" void on_signal(int number) {
  char const* text = number == SIGSEGV   ? "test runner: segmentation fault"
                     : number == SIGABRT ? "test runner: abort"
                     : number == SIGFPE  ? "test runner: arithmetic fault"
                     : number == SIGILL  ? "test runner: illegal instruction"
                     : number == SIGBUS  ? "test runner: bus error"
                                         : "test runner: ended from outside";
  say_where(text);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

extern "C" void on_exit_called() {
  if (the.finished) return;
  say_where("test runner: exit was called");
  std::_Exit(left_early);  // also when the caller said 0
}

/// mpiexec kills without a word: a second earlier, every rank says where it is.
extern "C" void on_time_up(int) {
  say_where("test runner: the time is up");
}

#ifdef DTM_RUNNER_ADDRESS_SANITIZER
extern "C" void on_sanitizer() {
  if (!the.finished) say_where("test runner: this report came up");
}
#endif

void watch_this_process() {
  char const* limit = std::getenv("MPIEXEC_TIMEOUT");
  int const seconds = limit ? std::atoi(limit) : 0;
  if (seconds > 1) {
    std::signal(SIGALRM, on_time_up);
    alarm(static_cast<unsigned>(seconds - 1));
  }
  std::atexit(on_exit_called);
  std::at_quick_exit(on_exit_called);
  for (int number : {SIGTERM, SIGABRT}) std::signal(number, on_signal);
#ifdef DTM_RUNNER_ADDRESS_SANITIZER  // which reports the rest better
  __sanitizer_set_death_callback(on_sanitizer);
#else
  for (int number : {SIGSEGV, SIGFPE, SIGILL, SIGBUS}) std::signal(number, on_signal);
#endif
}

// ---- meeting between the runs of a case --------------------------------------------------------------
/// What a rank says when it has done a run: `run` counts from 1, 0 stands for the end of the case.
struct report {
  int run = 0;
  bool failed = false, followed = false, timed_out = false;
  std::string text;

  std::string packed() const {
    return std::to_string(run) + ' ' + std::to_string(failed) + ' ' + std::to_string(followed) +
           ' ' + std::to_string(timed_out) + '\n' + text;
  }
  static report unpack(std::string const& packed) {
    report r;
    auto const line = packed.find('\n');
    std::istringstream(packed.substr(0, line)) >> r.run >> r.failed >> r.followed >> r.timed_out;
    r.text = packed.substr(line + 1);
    return r;
  }
};

/// Rank 0's side: reports of this case that wait for an answer.
std::vector<std::optional<report>> waiting;

std::string list_of(std::vector<int> const& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

/// Shows the failures of the other ranks, and says which ranks merely followed.
void show(std::vector<std::optional<report>> const& reports) {
  std::vector<int> failing, following;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (!reports[rank]->failed) continue;
    (reports[rank]->followed ? following : failing).push_back(static_cast<int>(rank));
    if (rank > 0 && !reports[rank]->followed)
      std::cout << "---- rank " << rank << " of " << reports.size() << ", case \"" << the.name
                << "\" ----\n"
                << reports[rank]->text << '\n';
  }
  std::string who = failing.empty() ? "" : list_of(failing);
  if (!following.empty())
    std::cout << list_of(following) << " left case \"" << the.name
              << "\" because a peer had failed\n";
  if (who.empty()) who = following.empty() ? "no rank alone" : list_of(following);
  if (!the.complaint.empty()) std::cout << "case \"" << the.name << "\": " << the.complaint << '\n';
  std::cout << std::flush;
  the.failures.push_back('"' + the.name + "\" (" + who + ')');
}

/// Everybody reports; the answer is whether the case has failed anywhere. Ranks that took different
/// sections meet at different places: then the case fails, and they meet again at its end.
bool meet(report const& mine) {
  auto const& ranks = *the.ranks;
  std::string const what = "end of case \"" + the.name + '"';
  if (ranks.rank() != 0) {
    ranks.send(0, mine.packed(), what);
    return ranks.receive(0, what) == "failed";
  }
  waiting[0] = mine;
  auto const start = control::clock::now();
  double allowed = ranks.deadline();
  for (int turn = 0;; ++turn) {
    std::vector<char> arrived(waiting.size(), 1);
    bool complete = true, failed = the.failed, same = true, at_end = true;
    std::string text;
    for (std::size_t rank = 0; rank < waiting.size(); ++rank) {
      if (!waiting[rank] && ranks.try_receive(static_cast<int>(rank), text, what))
        waiting[rank] = report::unpack(text);
      if (!waiting[rank]) {
        arrived[rank] = 0;
        complete = false;
        continue;
      }
      failed |= waiting[rank]->failed;
      same &= waiting[rank]->run == mine.run;
      at_end &= waiting[rank]->run == 0;
      if (waiting[rank]->timed_out) allowed = std::min(allowed, 1.0);
    }
    if (!complete) {
      if (control::seconds_since(start) > allowed)
        ranks.give_up(control::absent(arrived), what, control::seconds_since(start));
      control::pause(turn);
      continue;
    }
    if (!same && !failed) {
      failed = true;
      the.complaint = "the ranks took different sections";
    }
    if (at_end && failed) show(waiting);
    bool const answer_only_runs = !same;  // those at the end stay there until the others have come
    for (std::size_t rank = 1; rank < waiting.size(); ++rank) {
      if (answer_only_runs && waiting[rank]->run == 0) continue;
      ranks.send(static_cast<int>(rank), failed ? "failed" : "passed", what);
      waiting[rank].reset();
    }
    the.failed = failed;
    if (!answer_only_runs || mine.run != 0) {
      waiting[0].reset();
      return failed;
    }
  }
}

// ---- Catch2 ------------------------------------------------------------------------------------------
/// Set by the translators below when Catch2 asks what an exception says; read when it reports a failure.
enum class cause { own, peer, deadline } last_cause = cause::own;

#if DTM_CATCH2_VERSION == 3
using listener_base = Catch::EventListenerBase;
#else
using listener_base = Catch::TestEventListenerBase;
#endif
#if DTM_CATCH2_VERSION == 3
using assertion_ended_result = void;
#else
using assertion_ended_result = bool;
#endif

class listener : public listener_base {
 public:
  using listener_base::listener_base;

  void testCaseStarting(Catch::TestCaseInfo const& info) override {
    listener_base::testCaseStarting(info);
    the.name = info.name;
    the.run = 0;
    the.failed_here = the.timed_out = the.failed = the.skipped = false;
    the.followed = true;
    the.complaint.clear();
    remember_where();
    if (output) output->take();
    the.no_world = nullptr;
    try {
      the.world.reset(new comm::world(*the.root, the.settings));
    } catch (std::exception const& e) {
      if (the.root->has_failed()) {  // somebody never came
        std::fprintf(stderr, "test runner: no world for case \"%s\": %s\n", the.name.c_str(),
                     e.what());
        the.finished = true;
        std::_Exit(exit_absent);
      }
      the.no_world =
          std::current_exception();  // a peer is ahead, and has failed in this case already
    }
  }

  void sectionStarting(Catch::SectionInfo const& info) override {
    listener_base::sectionStarting(info);
    if (depth_++ > 0 || ++the.run == 1 || the.failed) return;
    the.failed = meet({the.run - 1, the.failed_here, the.followed, the.timed_out, ""});
  }

  void sectionEnded(Catch::SectionStats const& stats) override {
    listener_base::sectionEnded(stats);
    --depth_;
  }

  void assertionStarting(Catch::AssertionInfo const&) override { last_cause = cause::own; }

  assertion_ended_result assertionEnded(Catch::AssertionStats const& stats) override {
    auto const& result = stats.assertionResult;
    auto const why = std::exchange(last_cause, cause::own);
    if (!result.isOk()) {
      the.failed_here = true;
      the.timed_out |= why == cause::deadline;
      if (why != cause::peer) the.followed = false;
      bool const threw = result.getResultType() == Catch::ResultWas::ThrewException;
      bool const goes_on =
          (result.m_info.resultDisposition & Catch::ResultDisposition::ContinueOnFailure) != 0;
      if (why != cause::peer && (threw || !goes_on)) tell_peers(stats);
    }
    return assertion_ended_result(true);
  }

  void testCaseEnded(Catch::TestCaseStats const& stats) override {
    listener_base::testCaseEnded(stats);
    if (fatal_) return;
    std::string const text = output ? output->take() : "";
    bool const failed = meet({0, the.failed_here, the.followed, the.timed_out, text});
    ++the.cases;
    the.cases_failed += failed;
    the.cases_skipped += the.skipped && !failed;
    the.world.reset();
  }

  void testRunEnded(Catch::TestRunStats const& stats) override {
    listener_base::testRunEnded(stats);
    the.assertions = stats.totals.assertions.passed + stats.totals.assertions.failed;
    if (output) output->close();
  }

#if DTM_CATCH2_VERSION == 3
  void fatalErrorEncountered(Catch::StringRef) override {
    fatal_ = true;
  }
#endif

 private:
  static void tell_peers(Catch::AssertionStats const& stats) {
    auto const& result = stats.assertionResult;
    std::ostringstream text;
    text << result.getSourceInfo() << ": " << result.getExpressionInMacro();
    if (result.hasMessage()) text << ": " << result.getMessage();
    if (the.world) the.world->declare_failure(text.str());
  }

  int depth_ = 0;
  bool fatal_ = false;
};
CATCH_REGISTER_LISTENER(listener)

CATCH_TRANSLATE_EXCEPTION(peer_failed const& e) {
  last_cause = cause::peer;
  return e.what();
}
CATCH_TRANSLATE_EXCEPTION(deadline_exceeded const& e) {
  last_cause = cause::deadline;
  return e.what();
}

// ---- before and after --------------------------------------------------------------------------------
bool given(int argc, char** argv, std::vector<std::string> const& names) {
  return std::any_of(argv + 1, argv + argc, [&](char const* argument) {
    return std::any_of(names.begin(), names.end(), [&](std::string const& name) {
      return argument == name || std::string(argument).rfind(name + '=', 0) == 0;
    });
  });
}

/// Same order everywhere, or a deadlock follows: Catch2 3 shuffles by default, with a seed of its own.
std::vector<std::string> arguments(int argc, char** argv, int rank) {
  std::vector<std::string> out(argv, argv + 1);
  for (int i = 1; i < argc; ++i) {
    std::string const argument = argv[i];
    bool const about_output =
        argument == "-r" || argument == "--reporter" || argument == "-o" || argument == "--out";
    if (rank > 0 && about_output)
      ++i;  // one rank writes files and reports
    else
      out.push_back(argument);
  }
  if (!given(argc, argv, {"--order"})) out.insert(out.end(), {"--order", "decl"});
  if (!given(argc, argv, {"--rng-seed"})) out.insert(out.end(), {"--rng-seed", "1"});
  return out;
}

std::string refusal(int argc, char** argv, int ranks) {
  if (ranks == 1) return "";
  if (given(argc, argv, {"-a", "--abort", "-x", "--abortx"}))
    return "--abort and --abortx count one rank's failures; they are refused with more than one "
           "rank";
  for (int i = 1; i + 1 < argc; ++i)
    if (!std::strcmp(argv[i], "--order") && !std::strncmp(argv[i + 1], "rand", 4) &&
        !given(argc, argv, {"--rng-seed"}))
      return "--order rand needs --rng-seed, so that every rank draws the same order";
  return "";
}

/// The names of the cases that will run, in order.
std::string case_list(Catch::Session& session) {
  auto const& config = session.config();
  std::string names;
  auto add = [&](auto const& cases, bool hidden_too) {
    for (auto const& one : cases)
      if (hidden_too || !one.getTestCaseInfo().isHidden())
        names += one.getTestCaseInfo().name + '\n';
  };
  auto const& all = Catch::getAllTestCasesSorted(config);
  if (config.hasTestFilters())
    add(Catch::filterTests(all, config.testSpec(), config), true);
  else
    add(all, false);
  return names;
}

/// Ranks that would run other cases than rank 0; empty when all agree.
std::string disagreement(std::string const& mine, control const& ranks) {
  auto const lists = ranks.exchange(mine, "comparing the lists of cases");
  auto const count = [](std::string const& l) { return std::count(l.begin(), l.end(), '\n'); };
  std::vector<int> others;
  for (std::size_t rank = 1; rank < lists.size(); ++rank)
    if (lists[rank] != lists[0]) others.push_back(static_cast<int>(rank));
  if (others.empty()) return "";
  auto const& other = lists[static_cast<std::size_t>(others[0])];
  auto const at = std::mismatch(lists[0].begin(), lists[0].end(), other.begin(), other.end());
  auto const line = [](std::string const& l, std::size_t position) {
    auto const begin = position ? l.rfind('\n', position - 1) + 1 : 0;
    return begin < l.size() ? '"' + l.substr(begin, l.find('\n', begin) - begin) + '"' : "nothing";
  };
  auto const position = static_cast<std::size_t>(at.first - lists[0].begin());
  return list_of(others) + " would run other cases than rank 0 (" + std::to_string(count(other)) +
         " instead of " + std::to_string(count(lists[0])) +
         "; first difference: " + line(other, position) + " instead of " +
         line(lists[0], position) + ")";
}

int totals(control const& ranks) {
  auto const counts = ranks.exchange(std::to_string(the.assertions), "adding the totals");
  std::uint64_t sum = 0;
  bool const equal =
      std::all_of(counts.begin(), counts.end(), [&](auto const& c) { return c == counts[0]; });
  std::string each;
  for (auto const& count : counts) {
    sum += std::stoull(count);
    each += (each.empty() ? "" : " ") + count;
  }
  int const code = the.cases_failed > 0    ? some_failed
                   : the.cases_skipped > 0 ? some_skipped
                   : sum == 0              ? nothing_ran
                                           : all_passed;
  if (ranks.rank() == 0) {
    if (the.cases == 0)
      std::printf("FAILED: no test case ran\n");
    else if (code == nothing_ran)
      std::printf("FAILED: no assertion ran\n");
    for (auto const& failure : the.failures) std::printf("FAILED: %s\n", failure.c_str());
    std::printf("%s: %d cases", code == some_failed || code == nothing_ran ? "FAILED" : "passed",
                the.cases);
    if (the.cases_failed) std::printf(" (%d failed)", the.cases_failed);
    if (the.cases_skipped) std::printf(" (%d skipped)", the.cases_skipped);
    std::printf(", %llu assertions (%s per rank), %d rank%s\n",
                static_cast<unsigned long long>(sum), equal ? counts[0].c_str() : each.c_str(),
                ranks.size(), ranks.size() == 1 ? "" : "s");
    std::fflush(stdout);
  }
  return code;
}

/// Like a program's, but nobody waits ten minutes for a test.
comm::options settings_from_environment() {
  auto settings = comm::options::from_environment();
  if (!std::getenv("DTM_DEADLINE")) settings.deadline_seconds = 20;
  return settings;
}

int run(int argc, char** argv) {
  the.settings = settings_from_environment();
  control ranks(the.settings.deadline_seconds);
  comm::world root(ranks.native(), the.settings);
  the.ranks = &ranks;
  the.root = &root;
  the.name = "(before the first)";
  waiting.assign(static_cast<std::size_t>(ranks.size()), std::nullopt);
  remember_where();
  watch_this_process();

  bool const quiet = ranks.rank() != 0;
  gate gate(quiet);
  output = &gate;
  Catch::Session session;
  int status = 0;
  {
    auto const words = arguments(argc, argv, ranks.rank());
    std::vector<char const*> pointers;
    for (auto const& word : words) pointers.push_back(word.c_str());
    auto* const errors = quiet ? std::cerr.rdbuf(&gate) : nullptr;
    status = session.applyCommandLine(static_cast<int>(pointers.size()), pointers.data());
    if (quiet) std::cerr.rdbuf(errors);
  }
  std::string complaint = refusal(argc, argv, ranks.size());
  if (status == 0 && complaint.empty())
    complaint = disagreement(case_list(session), ranks);
  else
    ranks.exchange("(no cases: wrong arguments)\n", "comparing the lists of cases");
  if (!complaint.empty()) {
    if (!quiet) std::fprintf(stderr, "test runner: %s\n", complaint.c_str());
    status = some_failed;
  }
  bool const lists_only =
      given(argc, argv,
            {"-l", "--list-tests", "-t", "--list-tags", "--list-reporters",
             "--list-test-names-only", "--list-listeners", "-h", "-?", "--help", "--libidentify"});
  if (status != 0) return status;
  int const catch_status = session.run();
  if (lists_only) return 0;
  status = totals(ranks);
  // A rank's own opinion counts too: Catch2 also fails for reasons that no case shows.
  auto const opinions = ranks.exchange(std::to_string(catch_status), "agreeing on the exit status");
  bool const any =
      std::any_of(opinions.begin(), opinions.end(), [](auto const& o) { return o != "0"; });
  return any && (status == all_passed || status == some_skipped) ? int(some_failed) : status;
}

}  // namespace

comm::world& world() {
  if (the.failed)
    throw peer_failed(
        0, "case \"" + the.name + "\" has failed already; its other sections are not run");
  if (the.no_world) std::rethrow_exception(the.no_world);
  return *the.world;
}

int rank() {
  return the.ranks->rank();
}
int ranks() {
  return the.ranks->size();
}

void skip(std::string const& reason) {
  if (!the.skipped && the.ranks->rank() == 0)
    std::cout << "skipped: " << the.name << ": " << reason << std::endl;
  the.skipped = true;
#if DTM_CATCH2_VERSION == 3
  SKIP(reason);
  std::abort();
#else
  throw Catch::TestFailureException{};
#endif
}

}  // namespace dtm::testing

int main(int argc, char** argv) {
  int provided = 0;
  {
#ifdef DTM_RUNNER_ADDRESS_SANITIZER
    __lsan::ScopedDisabler mpi_keeps_its_own;  // a kilobyte that MPICH's start-up never frees
#endif
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  }
  int const status = dtm::testing::run(argc, argv);
  MPI_Finalize();
  dtm::testing::the.finished = true;
  return status;
}
