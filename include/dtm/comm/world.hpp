#pragma once
// The ranks of a program, as the library sees them: a communicator for data, another for control,
// the deadline and the check level. Errors of one rank become errors of all: code that may throw on
// one rank only runs inside `run`.
//
//   dtm::comm::world world(MPI_COMM_WORLD);
//   world.run([&] { ... });   // whoever throws tells the others: their next wait throws peer_failed
//
// After a failure a world is spent: every further operation on it throws, its communicators are
// abandoned rather than freed, since messages may still be under way. Work goes on in a fresh
// world, made by all ranks from a root world that carries no data itself:
//
//   dtm::comm::world fresh(root, options);

#include <mpi.h>

#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "channel.hpp"

namespace dtm::comm {

class world {
 public:
  /// Collective over `parent`, which is only duplicated and may be used freely afterwards. Throws
  /// deadline_exceeded when not every rank comes.
  explicit world(MPI_Comm parent, options settings = options::from_environment(),
                 call_site where = call_site::current())
      : settings_(settings),
        control_(std::make_unique<control>(first_duplicate(parent, settings_, where))) {
    make_channel(where);
  }

  /// Collective over the ranks of `root`. They may come from anywhere, also from the failure of an
  /// earlier world; the deadline of `root` bounds how long they wait for each other, and absent
  /// ranks are named.
  world(world& root, options settings, call_site where = call_site::current())
      : settings_(settings), control_(std::make_unique<control>(later_duplicate(root, where))) {
    make_channel(where);
  }

  world(world const&) = delete;
  world& operator=(world const&) = delete;

  int rank() const { return control_->rank(); }
  int size() const { return control_->size(); }
  check_level level() const { return settings_.level; }
  options const& settings() const { return settings_; }
  MPI_Comm native() const { return channel_->native(); }

  /// Runs `f` as a part of the program that all ranks enter and leave together. An exception is
  /// declared to the peers and passes on; a rank that ends well waits for the others, so that a
  /// failure of one is an error on all.
  template <class F>
  auto run(F&& f, call_site where = call_site::current()) -> std::invoke_result_t<F> {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
        std::forward<F>(f)();
        meet({"end of run", "", 0, where});
      } else {
        auto result = std::forward<F>(f)();
        meet({"end of run", "", 0, where});
        return result;
      }
    } catch (...) {
      failure f = current_failure(rank());
      f.kind = failure_kind::plain;  // whoever hears of it throws peer_failed
      control_->declare(std::move(f));
      throw;
    }
  }

  /// Tells every peer, once, that this rank has failed and why. Their next wait, or the one they
  /// are in, throws peer_failed; so does every later operation here.
  void declare_failure(std::string_view text) noexcept {
    try {
      control_->declare({failure_kind::plain, rank(), std::string(text)});
    } catch (...) {  // no memory for the text: the peers end by their deadline
    }
  }

  /// Throws if a notice of failure has arrived. For long computations between collectives.
  void throw_if_peer_failed() {
    control_->serve();
    control_->throw_if_failed();
  }

  bool has_failed() const { return control_->failed().has_value(); }

  /// Waits until all ranks are here.
  void meet(call who) {
    auto const what = channel_->open(who, "world", "", 0);
    if (size() > 1) {
      MPI_Request request = mpi::barrier(native());
      channel_->wait(std::span(&request, 1), what);
    }
    channel_->close(what);
  }

  // for groups
  control& ranks() { return *control_; }
  std::shared_ptr<channel> const& all() const { return channel_; }

 private:
  /// MPI 4 has a non-blocking duplicate. Before the control plane exists nobody can be asked who is
  /// absent.
  static MPI_Comm first_duplicate(MPI_Comm parent, options const& settings, call_site where) {
    if (!mpi::is_running())
      throw argument_error(
          "a world needs MPI: call MPI_Init_thread, or create a dtm::comm::environment, before it");
    auto pending = std::make_shared<std::pair<MPI_Comm, MPI_Request>>();  // MPI writes here also
                                                                          // after a deadline
    mpi::check(MPI_Comm_idup(parent, &pending->first, &pending->second), "making a world");
    auto const start = clock::now();
    patience patience;
    while (!detail::all_complete(std::span(&pending->second, 1), "making a world")) {
      if (settings.deadline_seconds > 0 && seconds_since(start) > settings.deadline_seconds) {
        detail::keep_until_exit(pending);
        throw deadline_exceeded("deadline of " + std::to_string(settings.deadline_seconds) +
                                " s exceeded in making a world at " + where.file + ":" +
                                std::to_string(where.line) +
                                ": not every rank of the parent communicator came");
      }
      patience.pause();
    }
    return pending->first;
  }

  static MPI_Comm later_duplicate(world& root, call_site where) {
    root.meet({"fresh world", "", 0, where});
    return duplicate(root.ranks(), root.native(), root.settings_.deadline_seconds, where);
  }

  static MPI_Comm duplicate(control& ranks, MPI_Comm from, double deadline, call_site where) {
    auto pending = std::make_shared<std::pair<MPI_Comm, MPI_Request>>();
    mpi::check(MPI_Comm_idup(from, &pending->first, &pending->second), "making a world");
    try {
      wait(ranks, std::span(&pending->second, 1), deadline,
           make_signature({"making a world", "", 0, where}, "world", 0, "", 0));
    } catch (...) {
      detail::keep_until_exit(std::move(pending));
      throw;
    }
    return pending->first;
  }

  /// A peer may have made its world and failed in it before this rank has made its own: then this
  /// world is born spent, and its first operation throws, so that all ranks fail at the same place
  /// of the program.
  void make_channel(call_site where) {
    MPI_Comm data = MPI_COMM_NULL;
    try {
      data = duplicate(*control_, control_->native(), settings_.deadline_seconds, where);
    } catch (peer_failed const&) {
    }
    std::vector<int> members(std::size_t(size()), 0);
    std::iota(members.begin(), members.end(), 0);
    channel_ =
        std::make_shared<channel>(*control_, settings_, data, true, std::move(members), rank());
  }

  options settings_;
  std::unique_ptr<control> control_;
  std::shared_ptr<channel> channel_;
};

/// For regions that cannot be a function object: declares a failure when it is left by an
/// exception.
class guard {
 public:
  explicit guard(world& ranks, call_site where = call_site::current())
      : ranks_(ranks), where_(where), exceptions_(std::uncaught_exceptions()) {}
  guard(guard const&) = delete;
  guard& operator=(guard const&) = delete;
  ~guard() {
    if (std::uncaught_exceptions() <= exceptions_) return;
    char text[256];
    std::snprintf(text, sizeof text, "an exception left the guarded region of %.180s:%u",
                  where_.file, where_.line);
    ranks_.declare_failure(text);
  }

 private:
  world& ranks_;
  call_site where_;
  int exceptions_;
};

}  // namespace dtm::comm
