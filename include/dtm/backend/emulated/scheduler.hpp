#pragma once
// Runs the threads of a block, one fiber for each that has to wait, in an order that a setting
// chooses. A thread runs until it reaches a barrier or leaves; the last to arrive makes all that
// waited ready again. A thread that has left gives its fiber to the next one that has not begun,
// so a kernel without barriers is a loop on one fiber.
//
// When nobody is ready and not all have left, a barrier was skipped. The first fault ends the
// launch: the fibers are abandoned where they stand, and launch() throws.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "dtm/backend/emulated/fault.hpp"
#include "dtm/backend/emulated/fiber.hpp"
#include "dtm/backend/emulated/shadow.hpp"

namespace dtm::emulation {

/// In which order the threads of a block run between two barriers, and blocks after each other. A
/// right kernel gives the same bits in all of them.
enum class schedule { ascending, descending, shuffled };

struct settings {
  schedule order = schedule::ascending;
  std::uint64_t seed = 1;  // of shuffled
};

namespace detail {

inline constexpr int most_threads = 1024;
inline constexpr std::size_t most_shared_bytes = 48 * 1024;
inline constexpr std::size_t most_exchanged_bytes = 16;  // by a shuffle, per lane

/// The factors of a warp's product as floats, in the place of each element.
struct product_tiles {
  float a[kernels::mma_tile::rows][kernels::mma_tile::inner];
  float b[kernels::mma_tile::inner][kernels::mma_tile::columns];
};

struct warp_state {
  int arrived = 0;
  int first = 0;  // the first that arrived
  site at;
  std::uint32_t interval = 0;   // counts sync_warp()
  std::uint32_t exchanges = 0;  // counts the others, whose buffers alternate
};

struct pending_copy {
  shadowed_array* array;
  int index;
  int elements;
  void const* source;
  int batch;
};

struct pending_copies {
  std::vector<pending_copy> copies;
  int batch = 0;  // the one that is open
};

class scheduler {
 public:
  // ---- the launch ----

  /// body(*this) runs on every fiber: it calls the kernel for thread(), then next_thread(), without
  /// end.
  void begin(int threads, void const* kernel, void (*body)(scheduler&), std::string (*name)(),
             settings const& how) {
    threads_ = threads;
    kernel_ = kernel;
    body_ = body;
    name_ = name;
    how_ = how;
    random_ = how.seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    if (random_ == 0) random_ = 1;
    active_.clear();
    shared_bytes_ = 0;
    if (interval_ > 0x7fffffffu) forget();
    begun_fibers_ = 0;  // those of the last launch stand in its kernel
    idle_.clear();
    if (fault_.empty()) return;
    fault_.clear();  // and what the fault left behind
    std::fill(fiber_of_, fiber_of_ + most_threads, nullptr);
    for (site& place : sites_) place.called = operation::none;
    for (warp_state& warp : warps_) warp.arrived = 0;
    for (pending_copies& of_thread : copies_) of_thread.copies.clear();
    head_ = ready_ = 0;
  }

  /// Runs one block; false means a fault.
  bool run_block(std::int64_t block, std::int64_t blocks) {
    block_ = block;
    blocks_ = blocks;
    finished_ = arrived_ = 0;
    has_waited_ = has_copied_ = false;
    first_interval_ = ++interval_;
    make_ready(0, threads_);
    take_next();
    fiber& first = idle_fiber();
    running_ = &first;
    main_.hand_over(first);
    running_ = nullptr;
    if (fault_.empty() && finished_ < threads_) record(skipped_barrier());
    return fault_.empty();
  }

  std::string const& fault() const { return fault_; }
  std::string kernel_name() const { return name_(); }

  // ---- what a fiber asks ----

  /// The thread that runs has left the kernel. Returns when another one begins on this fiber.
  void next_thread() {
    ++finished_;
    if (has_copied_ && !copies_[current_].copies.empty()) {
      record("leaves the kernel before wait() for its asynchronous copies");
      abandon();
    }
    if (has_waited_) {
      fiber_of_[current_] = nullptr;
      sites_[current_].called = operation::none;
    }
    if (ready_ > 0 && fiber_of_[queue_[head_]] == nullptr) return take_next();
    idle_.push_back(running_);
    go_on();
  }

  void const* kernel() const { return kernel_; }
  int thread() const { return current_; }
  int threads() const { return threads_; }
  std::int64_t block() const { return block_; }
  std::int64_t blocks() const { return blocks_; }
  moment now() const {
    return {current_, interval_, warps_[current_ / kernels::warp_size].interval, first_interval_};
  }

  /// Waits for all threads of the block; true where `vote` was true on one of them.
  bool wait_block(site const& at, bool vote) {
    if (arrived_ == 0) {
      first_at_ = at;
      first_arrived_ = current_;
      vote_ = false;
    } else if (!(first_at_ == at)) {
      diverge(first_arrived_, first_at_, at);
    }
    vote_ = vote_ || vote;
    sites_[current_] = at;
    if (++arrived_ == threads_) {
      arrived_ = 0;
      result_ = vote_;
      ++interval_;
      make_ready(0, threads_);
    }
    suspend();
    return result_;
  }

  /// Waits for all lanes of the warp. Only sync_warp() orders what they do to memory.
  void wait_warp(site const& at, bool orders_memory) {
    int const number = current_ / kernels::warp_size;
    warp_state& warp = warps_[number];
    if (warp.arrived == 0) {
      warp.at = at;
      warp.first = current_;
    } else if (!(warp.at == at)) {
      diverge(warp.first, warp.at, at);
    }
    sites_[current_] = at;
    if (++warp.arrived == kernels::warp_size) {
      warp.arrived = 0;
      ++(orders_memory ? warp.interval : warp.exchanges);
      make_ready(number * kernels::warp_size, kernels::warp_size);
    }
    suspend();
  }

  // Lanes write before wait_warp() and read after it. Two buffers are enough: nobody writes to the
  // first again before all have arrived at the second exchange, and so have read.
  std::uint32_t exchange() const { return warps_[current_ / kernels::warp_size].exchanges; }
  unsigned char* exchanged(std::uint32_t exchange, int thread) {
    return exchanged_[exchange % 2][thread].byte;
  }
  product_tiles& tiles(std::uint32_t exchange) {
    if (tiles_.empty()) tiles_.resize(2 * most_threads / kernels::warp_size);
    return tiles_[std::size_t(current_ / kernels::warp_size * 2) + exchange % 2];
  }
  pending_copies& copies() {
    has_copied_ = true;
    return copies_[current_];
  }

  /// The shared array of this key, made when a thread first asks for it.
  shadowed_array& shared(void const* key, std::string (*tag)(), int count, std::size_t bytes) {
    for (shadowed_array* array : active_)
      if (array->key == key) return *array;
    auto found = std::find_if(known_.begin(), known_.end(),
                              [&](auto const& array) { return array->key == key; });
    if (found == known_.end()) {
      known_.push_back(std::make_unique<shadowed_array>(key, tag, count, bytes));
      found = known_.end() - 1;
    }
    active_.push_back(found->get());
    shared_bytes_ += (std::size_t(count) * bytes + 15) / 16 * 16;
    if (shared_bytes_ > most_shared_bytes) {
      record("shared array " + tag() + " makes " + std::to_string(shared_bytes_) +
             " bytes of shared memory; a block has " + std::to_string(most_shared_bytes));
      abandon();
    }
    return **found;
  }

  // ---- faults ----
  // In two steps, since abandon() runs no destructors: the text must be gone by then.

  void record(std::string const& text) {
    if (!fault_.empty()) return;
    fault_ = "kernel " + name_() + ", block " + std::to_string(block_) +
             (running_ ? ", thread " + std::to_string(current_) : "") + ": " + text;
  }
  [[noreturn]] void abandon() {
    running_->hand_over(main_);
    std::abort();  // nobody resumes it
  }
  fiber* running() const { return running_; }

  std::uint32_t barrier_interval() const { return interval_ - first_interval_; }

 private:
  // ---- who runs ----

  void make_ready(int first, int count) {
    int order[most_threads];
    bool const down = how_.order == schedule::descending;
    for (int i = 0; i < count; ++i) order[i] = first + (down ? count - 1 - i : i);
    if (how_.order == schedule::shuffled)
      for (int i = count - 1; i > 0; --i) std::swap(order[i], order[random(i + 1)]);
    for (int i = 0; i < count; ++i) queue_[(head_ + ready_ + i) % most_threads] = order[i];
    ready_ += count;
  }
  void take_next() {
    current_ = queue_[head_];
    head_ = (head_ + 1) % most_threads;
    --ready_;
  }
  int random(int below) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return int((random_ >> 33) * std::uint64_t(below) >> 31);
  }

  void suspend() {
    has_waited_ = true;
    fiber_of_[current_] = running_;
    go_on();
  }
  void go_on() {
    fiber& here = *running_;
    if (ready_ == 0) {
      here.hand_over(main_);
      return;
    }
    take_next();
    fiber* const next = fiber_of_[current_] ? fiber_of_[current_] : &idle_fiber();
    running_ = next;
    if (next != &here) here.hand_over(*next);
  }

  fiber& idle_fiber() {
    if (!idle_.empty()) {
      fiber& last = *idle_.back();
      idle_.pop_back();
      return last;
    }
    if (begun_fibers_ == fibers_.size()) fibers_.push_back(std::make_unique<fiber>(begun_fibers_));
    fiber& next = *fibers_[begun_fibers_++];
    next.start(&fiber_body, this);
    return next;
  }
  static void fiber_body(void* self) {
    auto& me = *static_cast<scheduler*>(self);
    me.running_->begun(me.main_);
    me.body_(me);
  }
  void forget() {  // the counters have run for years
    known_.clear();
    interval_ = 0;
    for (warp_state& warp : warps_) warp.interval = 0;
  }

  // ---- sentences ----

  [[noreturn]] void diverge(int first, site const& there, site const& here) {
    record("waits at " + here.text() + " while thread " + std::to_string(first) + " waits at " +
           there.text() + "; all threads must come to the same barrier");
    abandon();
  }
  std::string skipped_barrier() const {
    std::vector<std::pair<site, std::vector<int>>> groups;  // who waits where
    for (int thread = 0; thread < threads_; ++thread) {
      auto const group = std::find_if(groups.begin(), groups.end(),
                                      [&](auto& g) { return g.first == sites_[thread]; });
      if (group == groups.end())
        groups.push_back({sites_[thread], {thread}});
      else
        group->second.push_back(thread);
    }
    std::string text;
    for (auto const& [at, who] : groups) {
      bool const one = who.size() == 1;
      text += (text.empty() ? "" : ", ") + threads_text(who);
      if (at.called == operation::none)
        text += one ? " has left the kernel" : " have left the kernel";
      else
        text += (one ? " waits at " : " wait at ") + at.text();
    }
    return text + "; no thread may skip a barrier";
  }

  struct alignas(16) buffer {
    unsigned char byte[most_exchanged_bytes];
  };

  // the launch
  int threads_ = 0;
  void const* kernel_ = nullptr;
  void (*body_)(scheduler&) = nullptr;
  std::string (*name_)() = nullptr;
  settings how_;
  std::uint64_t random_ = 1;
  std::string fault_;
  std::vector<std::unique_ptr<shadowed_array>> known_;  // of all launches
  std::vector<shadowed_array*> active_;                 // of this one
  std::size_t shared_bytes_ = 0;
  // the block
  std::int64_t block_ = 0, blocks_ = 0;
  int finished_ = 0;
  bool has_waited_ = false, has_copied_ = false;  // one of its threads
  std::uint32_t interval_ = 0, first_interval_ = 0;
  int arrived_ = 0, first_arrived_ = 0;
  site first_at_;
  bool vote_ = false, result_ = false;
  // the threads
  int current_ = 0;
  int head_ = 0, ready_ = 0;
  int queue_[most_threads];  // who is ready, from head_ on
  fiber* fiber_of_[most_threads] = {};
  site sites_[most_threads];
  warp_state warps_[most_threads / kernels::warp_size];
  buffer exchanged_[2][most_threads];
  std::vector<product_tiles> tiles_;
  pending_copies copies_[most_threads];
  // the fibers
  fiber main_;
  fiber* running_ = nullptr;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::size_t begun_fibers_ = 0;  // in this launch
  std::vector<fiber*> idle_;      // of these, those whose thread has left
};

}  // namespace detail

}  // namespace dtm::emulation
