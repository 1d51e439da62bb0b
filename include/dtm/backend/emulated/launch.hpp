#pragma once
// Runs a kernel on the emulator: blocks one after another, the threads of a block on fibers. The
// first broken rule ends the launch with kernel_error; what the kernel has written by then stays.
// A memory fault becomes the same error where the switch of fibers is ours (x86-64); elsewhere it
// ends the process after a sentence.
//
// DTM_EMULATED_SCHEDULE=descending or shuffled in the environment chooses the order of a launch
// that names none, DTM_EMULATED_SEED the seed.

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>

#include "dtm/backend/emulated/block.hpp"
#include "dtm/backend/emulated/memory.hpp"

#if DTM_EMULATED_OWN_SWITCH
#include <ucontext.h>
#endif

namespace dtm::emulation {

namespace detail {

/// Turns a fault of a kernel's memory access into a fault of the launch. Installed while a launch
/// runs; a fault outside of a kernel goes to the handler that was there before.
class fault_handler {
 public:
  explicit fault_handler(scheduler& run) : outer_(current()) {
    run_ = &run;
    stack_t mine{};
    mine.ss_sp = signal_stack();
    mine.ss_size = signal_stack_bytes;
    ::sigaltstack(&mine, &old_stack_);  // the fault may be that a fiber's stack is full
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, &old_action_);
    current() = this;
  }
  fault_handler(fault_handler const&) = delete;
  ~fault_handler() {
    current() = outer_;
    ::sigaction(SIGSEGV, &old_action_, nullptr);
    ::sigaltstack(&old_stack_, nullptr);
  }

 private:
  static constexpr std::size_t signal_stack_bytes = 64 * 1024;
  static void* signal_stack() {
    static thread_local std::unique_ptr<char[]> const bytes(new char[signal_stack_bytes]);
    return bytes.get();
  }
  static fault_handler*& current() {
    static thread_local fault_handler* one = nullptr;
    return one;
  }

  static void handle(int, siginfo_t* information, void* state) {
    fault_handler* const self = current();
    if (self == nullptr || self->run_->running() == nullptr) {  // not a kernel
      static struct sigaction plain {};
      ::sigaction(SIGSEGV, self ? &self->old_action_ : &plain, nullptr);
      return;  // and the access faults again
    }
    // si_addr says nothing about an address that is none (not canonical)
    self->address_ = information->si_code == SI_KERNEL ? nullptr : information->si_addr;
#if DTM_EMULATED_OWN_SWITCH
    // Returning to leave() on the fiber's stack, from its top, undoes the signal: its mask and
    // stack are as before.
    auto& registers = static_cast<ucontext_t*>(state)->uc_mcontext.gregs;
    self->writes_ = (registers[REG_ERR] & 2) != 0;
    registers[REG_RIP] = reinterpret_cast<greg_t>(&leave);
    registers[REG_RSP] = reinterpret_cast<greg_t>(self->run_->running()->top()) - 8;
    self->run_->running()->unpoison();
#else
    (void)state;
    std::string const text =
        "dtm emulator: kernel " + self->run_->kernel_name() + ": " + self->sentence() + "\n";
    [[maybe_unused]] auto const written = ::write(2, text.data(), text.size());
    ::_exit(139);
#endif
  }
  static void leave() {
    fault_handler* const self = current();
    self->run_->record(self->sentence());
    self->run_->abandon();
  }

  std::string sentence() const {
    if (run_->running()->overflows_to(address_))
      return "needs more than " + std::to_string(fiber::stack_bytes) + " bytes of stack";
    std::string const verb = DTM_EMULATED_OWN_SWITCH == 0 ? "touches"
                             : writes_                    ? "writes"
                                                          : "reads";
    auto const place = device_memory::instance().find(address_);
    if (!place.known) {
      char number[32];
      std::snprintf(number, sizeof number, "%p", address_);
      return verb + " address " + (address_ ? number : "0 or one that cannot be") +
             ", which is in no allocation";
    }
    return verb + " at byte " + std::to_string(place.offset) + " of an allocation of " +
           std::to_string(place.bytes) + " bytes" +
           (place.offset < 0 ? ", before its start"
            : place.released ? " that has been released"
                             : ", beyond its end");
  }

  scheduler* run_;
  fault_handler* outer_;
  stack_t old_stack_{};
  struct sigaction old_action_ {};
  void* address_ = nullptr;
  bool writes_ = false;
};

/// The loop of a fiber: one thread after another as long as none has to wait.
template <class Kernel>
void run_threads(scheduler& run) {
  auto const& kernel = *static_cast<Kernel const*>(run.kernel());
  for (;;) {
    block context(run);
    bool left = true;
    try {  // no exception crosses a switch of fibers
      kernel(context);
    } catch (std::exception const& thrown) {
      left = false;
      run.record(std::string("throws an exception: ") + thrown.what());
    } catch (...) {
      left = false;
      run.record("throws an exception");
    }
    if (!left) run.abandon();
    run.next_thread();
  }
}

inline scheduler& this_thread_scheduler() {
  static thread_local std::unique_ptr<scheduler> const one(new scheduler);
  return *one;
}

inline settings settings_of_environment() {
  settings how;
  if (char const* const order = std::getenv("DTM_EMULATED_SCHEDULE")) {
    std::string const text = order;
    if (text == "descending")
      how.order = schedule::descending;
    else if (text == "shuffled")
      how.order = schedule::shuffled;
    else if (text != "ascending" && text != "")
      throw argument_error("DTM_EMULATED_SCHEDULE is '" + text +
                           "'; ascending, descending and shuffled are possible");
  }
  if (char const* const seed = std::getenv("DTM_EMULATED_SEED"))
    how.seed = std::strtoull(seed, nullptr, 10);
  return how;
}

/// The blocks in the order of a schedule.
class block_order {
 public:
  block_order(std::int64_t blocks, settings const& how) : blocks_(blocks), order_(how.order) {
    if (order_ != schedule::shuffled) return;
    step_ = std::int64_t(how.seed * 0x9e3779b97f4a7c15u >> 44) + 1;
    while (std::gcd(step_, blocks) != 1) ++step_;
  }
  std::int64_t operator[](std::int64_t i) const {
    if (order_ == schedule::ascending) return i;
    if (order_ == schedule::descending) return blocks_ - 1 - i;
    return std::int64_t(std::uint64_t(i + 1) * std::uint64_t(step_) % std::uint64_t(blocks_));
  }

 private:
  std::int64_t blocks_, step_ = 1;
  schedule order_;
};

}  // namespace detail

/// What the environment says, once; ascending where it says nothing.
inline settings const& default_settings() {
  static settings const one = detail::settings_of_environment();
  return one;
}

/// Runs kernel(block) for every thread of every block, Kernel::threads threads each. Throws
/// kernel_error.
template <class Kernel>
void launch(std::int64_t blocks, Kernel const& kernel, settings const& how = default_settings()) {
  static_assert(Kernel::threads > 0 && Kernel::threads % kernels::warp_size == 0 &&
                    Kernel::threads <= detail::most_threads,
                "dtm kernel: threads of a block are a multiple of 32, 1024 at most");
  static_assert(std::is_trivially_copyable_v<Kernel>,
                "dtm kernel: a kernel is copied to the device; its members are plain data");
  detail::scheduler& run = detail::this_thread_scheduler();
  auto const name = &detail::type_name<Kernel>;
  if (run.running() != nullptr) throw kernel_error("kernel " + name() + " is launched in a kernel");
  if (blocks < 0)
    throw kernel_error("kernel " + name() + " is launched with " + std::to_string(blocks) +
                       " blocks");
  if (blocks == 0) return;
  run.begin(Kernel::threads, &kernel, &detail::run_threads<Kernel>, name, how);
  {
    detail::fault_handler const handler(run);
    detail::block_order const order(blocks, how);
    for (std::int64_t i = 0; i < blocks; ++i)
      if (!run.run_block(order[i], blocks)) break;
  }
  if (!run.fault().empty()) throw kernel_error(run.fault());
  std::string const damage = detail::device_memory::instance().damage();
  if (!damage.empty())
    throw kernel_error("kernel " + name() + ", or one launched before it, " + damage);
}

/// For tests: calls run(settings) for every schedule, the last twice with different seeds. What it
/// returns, a container of plain values, must be the same bit for bit. Throws kernel_error.
template <class Run>
auto run_all_schedules(Run&& run) {
  settings const all[] = {{schedule::ascending, 1},
                          {schedule::descending, 1},
                          {schedule::shuffled, 1},
                          {schedule::shuffled, 2}};
  char const* const names[] = {"ascending", "descending", "shuffled (seed 1)", "shuffled (seed 2)"};
  if constexpr (std::is_void_v<decltype(run(all[0]))>) {
    for (settings const& how : all) run(how);
  } else {
    auto first = run(all[0]);
    for (int i = 1; i < 4; ++i) {
      auto const other = run(all[i]);
      if (other.size() != first.size())
        throw kernel_error(std::string("results of schedule ") + names[i] + " have another size");
      for (std::size_t j = 0; j < first.size(); ++j)
        if (std::memcmp(first.data() + j, other.data() + j, sizeof(first.data()[0])) != 0)
          throw kernel_error(std::string("results of the schedules ascending and ") + names[i] +
                             " differ at element " + std::to_string(j) +
                             ": threads or blocks depend on their order");
    }
    return first;
  }
}

}  // namespace dtm::emulation
