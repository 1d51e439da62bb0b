#pragma once
// Fibers: stacks that hand over to each other by hand. The emulator runs every thread of a block on
// one, so that a thread can wait at a barrier in the middle of a kernel.
//
// A fiber runs body(argument), which never returns: it hands over and is resumed, or is abandoned
// by start(), which begins anew on the same stack and runs no destructor. No exception may leave
// the body. All fibers that hand over to each other belong to one thread of the operating system.
//
// On x86-64 a switch is 14 instructions and no system call; elsewhere, or with
// DTM_EMULATED_UCONTEXT defined, it is swapcontext(), some twenty times slower.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "dtm/comm/sanitizer.hpp"

#if defined(__x86_64__) && defined(__linux__) && !defined(__ILP32__) && \
    !defined(DTM_EMULATED_UCONTEXT)
#define DTM_EMULATED_OWN_SWITCH 1
#else
#define DTM_EMULATED_OWN_SWITCH 0
#include <ucontext.h>
#endif

#ifdef DTM_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace dtm::emulation {

namespace detail {

#if DTM_EMULATED_OWN_SWITCH
// What a function call must preserve goes to the old stack and comes from the new one. The control
// words of the floating-point units are not among it: a kernel does not change them. A compiler
// that looks into the function would believe that it leaves memory and the other registers alone.
#if defined(__clang__)
#define DTM_EMULATED_OPAQUE __attribute__((naked, noinline))
#else
#define DTM_EMULATED_OPAQUE __attribute__((naked, noipa))
#endif
DTM_EMULATED_OPAQUE inline void exchange_stacks(void** /*from: rdi*/, void* /*to: rsi*/) {
  asm("pushq %rbp\n\t"
      "pushq %rbx\n\t"
      "pushq %r12\n\t"
      "pushq %r13\n\t"
      "pushq %r14\n\t"
      "pushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq %rsi, %rsp\n\t"
      "popq %r15\n\t"
      "popq %r14\n\t"
      "popq %r13\n\t"
      "popq %r12\n\t"
      "popq %rbx\n\t"
      "popq %rbp\n\t"
      "ret");
}
DTM_EMULATED_OPAQUE inline void first_frame() {
  asm("movq %r12, %rdi\n\t"
      "callq *%r13\n\t"
      "ud2");
}
#undef DTM_EMULATED_OPAQUE
#endif

}  // namespace detail

class fiber {
 public:
#ifdef DTM_ADDRESS_SANITIZER
  static constexpr std::size_t stack_bytes = 512 * 1024;  // its frames are larger
#else
  static constexpr std::size_t stack_bytes = 128 * 1024;
#endif

  /// The stack that the caller is on already; only to hand over from and to.
  fiber() = default;
  /// A stack of its own. Its number shifts the first frame, for stacks of equal alignment would
  /// all compete for the same lines of the cache.
  explicit fiber(std::size_t number) : shift_(number * 5 % 64 * 64) {
    page_ = std::size_t(::sysconf(_SC_PAGESIZE));
    void* const map = ::mmap(nullptr, page_ + stack_bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    map_ = static_cast<char*>(map);
    if (::mprotect(map_ + page_, stack_bytes, PROT_READ | PROT_WRITE) != 0) {
      ::munmap(map_, page_ + stack_bytes);
      throw std::bad_alloc();
    }
  }
  fiber(fiber const&) = delete;
  fiber& operator=(fiber const&) = delete;
  ~fiber() {
    if (map_ == nullptr) return;
    unpoison();  // the addresses may serve others
    ::munmap(map_, page_ + stack_bytes);
  }

  void start(void (*body)(void*), void* argument) {
    unpoison();  // frames that were abandoned
#ifdef DTM_ADDRESS_SANITIZER
    bottom_ = map_ + page_;
    size_ = stack_bytes;
#endif
#if DTM_EMULATED_OWN_SWITCH
    void** const frame = static_cast<void**>(top()) - 7;
    frame[0] = frame[1] = nullptr;             // r15 r14
    frame[2] = reinterpret_cast<void*>(body);  // r13
    frame[3] = argument;                       // r12
    frame[4] = frame[5] = nullptr;             // rbx rbp
    frame[6] = reinterpret_cast<void*>(&detail::first_frame);
    stack_pointer_ = frame;
#else
    body_ = body;
    argument_ = argument;
    ::getcontext(&state_);
    state_.uc_stack.ss_sp = map_ + page_;
    state_.uc_stack.ss_size = stack_bytes - shift_;
    state_.uc_link = nullptr;
    auto const self = reinterpret_cast<std::uintptr_t>(this);  // makecontext passes ints only
    ::makecontext(&state_, reinterpret_cast<void (*)()>(&first_frame), 2, unsigned(self >> 32),
                  unsigned(self & 0xffffffffu));
#endif
  }

  /// Suspends this fiber, which is running, and resumes another.
  void hand_over(fiber& to) {
#ifdef DTM_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.size_);
#endif
#if DTM_EMULATED_OWN_SWITCH
    detail::exchange_stacks(&stack_pointer_, to.stack_pointer_);
#else
    ::swapcontext(&state_, &to.state_);
#endif
#ifdef DTM_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
  }

  /// The first thing in a body. `first` is the fiber without a stack of its own; whoever begins
  /// first of all was begun by it, and sees how far its stack goes.
  void begun([[maybe_unused]] fiber& first) {
#ifdef DTM_ADDRESS_SANITIZER
    void const* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    if (first.bottom_ == nullptr) first.bottom_ = bottom, first.size_ = size;
#endif
  }

  /// True of an address just below the stack: the stack was too small.
  bool overflows_to(void const* address) const {
    auto const p = static_cast<char const*>(address);
    return map_ != nullptr && p >= map_ && p < map_ + page_;
  }
  /// Where the first frame begins; a multiple of 16.
  void* top() const {
    return map_ + page_ + stack_bytes - shift_;
  }
  void unpoison() {
#ifdef DTM_ADDRESS_SANITIZER
    if (map_ != nullptr) __asan_unpoison_memory_region(map_ + page_, stack_bytes);
#endif
  }

 private:
#if DTM_EMULATED_OWN_SWITCH
  void* stack_pointer_ = nullptr;
#else
  static void first_frame(unsigned high, unsigned low) {
    auto const self = reinterpret_cast<fiber*>(std::uintptr_t(high) << 32 | low);
    self->body_(self->argument_);
  }
  ucontext_t state_;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
#endif
#ifdef DTM_ADDRESS_SANITIZER
  void* fake_stack_ = nullptr;
  void const* bottom_ = nullptr;
  std::size_t size_ = 0;
#endif
  char* map_ = nullptr;
  std::size_t page_ = 0;
  std::size_t shift_ = 0;
};

}  // namespace dtm::emulation
