#pragma once
// The ranks of a world that are on one node and can map each other's memory.
//
// Every rank owns its segments: one of control words, made here, and the blocks of its context's arena.
// A peer maps them when it first reads something in them; where that is travels in a control word as
// descriptor and offset. So an arena grows without asking anybody, and a tile is read where it lies.
//
// Why not MPI_Win_allocate_shared. It and MPI_Win_free block until all ranks have come (law L10), the
// size is final, and the memory is in /dev/shm, often 64 MB in a container, where the first byte beyond
// is SIGBUS and no error. Topology for the same reason is not MPI_Comm_split_type, and more is asked
// than it knows: one kernel, one name space of processes, and a mapping that has been tried.

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "segment.hpp"
#include "transport.hpp"
#include "world.hpp"

namespace dtm::comm {

namespace detail {

/// Wakes one rank that sleeps until its peers have done something.
class bell {
 public:
  /// `is_needed` is asked when peers can see that this rank is about to sleep.
  template <class IsNeeded>
  void sleep(IsNeeded&& is_needed) {
    auto const seen = rung_.load(std::memory_order_relaxed);
    asleep_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_needed()) {
      timespec const moment{0, 200'000};  // a failure is not rung: its notice is looked for
      syscall(SYS_futex, &rung_, FUTEX_WAIT, seen, &moment, nullptr, 0);
    }
    asleep_.store(0, std::memory_order_relaxed);
  }
  /// After a store and a fence.
  void ring_if_asleep() {
    if (asleep_.load(std::memory_order_relaxed) == 0) return;
    rung_.fetch_add(1, std::memory_order_relaxed);
    syscall(SYS_futex, &rung_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

 private:
  alignas(64) std::atomic<std::uint32_t> rung_;
  std::atomic<std::uint32_t> asleep_;
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4);  // what the kernel takes
};

/// Where a rank says what it lends in one step of one channel. One line is the owner's, the other
/// counts those who have read.
struct shared_slot {
  alignas(64) std::atomic<std::uint64_t> posted;  // which operation; 0: none, or withdrawn
  std::int32_t descriptor;
  std::uint64_t bytes, offset;
  alignas(64) std::atomic<std::uint64_t> read;  // times, since the beginning
};

/// The control words of a rank for one channel.
struct shared_words {
  static constexpr int depth = 64;                 // operations that may be under way at once
  alignas(64) std::atomic<std::uint64_t> arrived;  // sequence number of its latest barrier
  shared_slot slots[depth];
};

struct control_segment {
  static constexpr int most_channels = 256;  // every set of eight axes
  alignas(64) std::uint64_t token;           // whose it is
  bell wakes;                                // its owner
  shared_words channels[most_channels];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace detail

class node {
 public:
  /// Collective over the world. `ranks_per_node` > 0 pretends nodes of so many ranks, for tests of
  /// mixed topologies. Throws mesh_error on all ranks where their wishes differ, or where shared
  /// memory is demanded and cannot be had.
  node(world& ranks, transport wanted, int ranks_per_node, call_site where) {
    if (ranks.size() > 1) find_peers(ranks, wanted, ranks_per_node, where);
    if (!is_shared_) peers_.clear();
  }
  node(node const&) = delete;
  node& operator=(node const&) = delete;

  /// Whether there are two ranks at least, of any node, that share memory.
  bool is_shared() const { return is_shared_; }
  /// Whether this rank shares memory with all of these, by their numbers in the world.
  bool reaches(std::span<int const> members) const {
    return is_shared_ && std::all_of(members.begin(), members.end(), [&](int rank) {
             return peers_[std::size_t(rank)].on_this_node;
           });
  }

  detail::shared_words& words(int rank, int channel) const {
    return words_of(rank)->channels[channel];
  }

  /// Turns that a rank which waits yields before it sleeps: few where ranks have to share cores, so that
  /// those who are late come sooner.
  int patience() const { return is_crowded_ ? 4 : 64; }
  detail::bell& bell_of(int rank) const { return words_of(rank)->wakes; }

  /// Of memory of this rank that it lends; set by whoever owns the memory.
  std::function<segment_place(void const*)> locate;

  /// What another rank lends, in this process.
  std::byte const* address(int rank, int descriptor, std::size_t bytes, std::size_t offset) {
    auto& peer = peers_[std::size_t(rank)];
    auto at = peer.lent.find(descriptor);
    if (at == peer.lent.end())
      at = peer.lent.emplace(descriptor, segment::of(peer.process, descriptor, bytes)).first;
    return at->second.start() + offset;
  }

 private:
  struct letter {
    char place[160];  // of ranks that may share memory the same
    std::int64_t process;
    std::uint64_t token;
    std::int32_t descriptor, wanted, ranks_per_node;
    cpu_set_t may_run_on;
    char trouble[192];
  };
  struct peer {
    bool on_this_node = false;
    std::int64_t process = 0;
    segment control;
    std::map<int, segment> lent;  // by descriptor
  };

  detail::control_segment* words_of(int rank) const {
    return reinterpret_cast<detail::control_segment*>(peers_[std::size_t(rank)].control.start());
  }

  /// Kernel and name space of processes; both are names that no two share.
  static std::string place_of_this_process() {
    char boot[64] = "", space[64] = "";
    if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
      if (std::fscanf(file, "%63s", boot) != 1) boot[0] = '\0';
      std::fclose(file);
    }
    (void)!readlink("/proc/self/ns/pid", space, sizeof space - 1);
    return std::string(boot) + " " + space;
  }

  letter introduce(int rank, transport wanted, int ranks_per_node) {
    letter mine{};
    mine.process = getpid();
    sched_getaffinity(0, sizeof mine.may_run_on, &mine.may_run_on);
    mine.wanted = int(wanted);
    mine.ranks_per_node = ranks_per_node;
    mine.descriptor = -1;
    std::string place = place_of_this_process();
    if (ranks_per_node > 0) place += " node " + std::to_string(rank / ranks_per_node);
    place.copy(mine.place, sizeof mine.place - 1);
    if (wanted == transport::messages) return mine;
    try {
      auto& own = peers_[std::size_t(rank)];
      own.control = segment::make(sizeof(detail::control_segment));
      own.on_this_node = true;
      mine.descriptor = own.control.descriptor();
      mine.token = std::uint64_t(hash_bytes(&mine, sizeof mine)) ^
                   std::uint64_t(clock::now().time_since_epoch().count());
      words_of(rank)->token = mine.token;
    } catch (memory_error const& e) {
      std::string(e.what()).copy(mine.trouble, sizeof mine.trouble - 1);
    }
    return mine;
  }

  void find_peers(world& ranks, transport wanted, int ranks_per_node, call_site where) {
    peers_.resize(std::size_t(ranks.size()));
    auto& all = *ranks.all();
    auto const what = all.open({"transport", "", 0, where}, "world", "", 0);
    letter mine = introduce(ranks.rank(), wanted, ranks_per_node);
    auto letters = all.gather<letter>(std::span(&mine, 1), what);
    require_one_wish(letters);
    if (wanted == transport::messages) return all.close(what);

    int sharing = 0;
    for (std::size_t rank = 0; rank < letters.size(); ++rank) {
      auto const& l = letters[rank];
      sharing += std::count_if(letters.begin(), letters.end(), [&](letter const& other) {
                   return std::string(other.place) == l.place;
                 }) > 1;
      if (std::string(l.place) == mine.place && int(rank) != ranks.rank()) meet_peer(rank, l, mine);
    }
    is_crowded_ =
        std::count_if(letters.begin(), letters.end(), [&](letter const& l) {
          return std::string(l.place) == mine.place && CPU_EQUAL(&l.may_run_on, &mine.may_run_on);
        }) > CPU_COUNT(&mine.may_run_on);
    letters = all.gather<letter>(std::span(&mine, 1), what);
    all.close(what);
    decide(letters, wanted, sharing);
  }

  static void require_one_wish(std::vector<letter> const& letters) {
    for (std::size_t rank = 1; rank < letters.size(); ++rank)
      if (letters[rank].wanted != letters[0].wanted ||
          letters[rank].ranks_per_node != letters[0].ranks_per_node)
        throw mesh_error("the ranks want different transports: rank 0 " + wish(letters[0]) +
                         ", rank " + std::to_string(rank) + " " + wish(letters[rank]));
  }
  static std::string wish(letter const& l) {
    return std::string(name(transport(l.wanted))) + " with ranks_per_node " +
           std::to_string(l.ranks_per_node);
  }

  void meet_peer(std::size_t rank, letter const& theirs, letter& mine) {
    if (theirs.descriptor < 0 || mine.descriptor < 0) return;  // has its trouble
    try {
      auto& them = peers_[rank];
      them.process = theirs.process;
      them.control =
          segment::of(theirs.process, theirs.descriptor, sizeof(detail::control_segment));
      if (words_of(int(rank))->token != theirs.token)
        throw memory_error("dtm shared memory: another process answers for rank " +
                           std::to_string(rank));
      them.on_this_node = true;
    } catch (memory_error const& e) {
      std::string(e.what()).copy(mine.trouble, sizeof mine.trouble - 1);
    }
  }

  /// The same on all ranks, since they have the same letters.
  void decide(std::vector<letter> const& letters, transport wanted, int sharing) {
    std::string trouble;
    for (std::size_t rank = 0; rank < letters.size(); ++rank) {
      auto const& l = letters[rank];
      if (l.trouble[0] != '\0')
        trouble = "rank " + std::to_string(rank) + ": " + l.trouble;
      else if (std::string(l.place) != letters[0].place && trouble.empty())
        trouble = "ranks 0 and " + std::to_string(rank) + " are on different nodes";
    }
    if (wanted == transport::shared_memory && !trouble.empty())
      throw mesh_error("options.transport is shared_memory, but " + trouble +
                       "; by_topology takes messages where ranks do not share memory");
    bool const in_order = std::all_of(letters.begin(), letters.end(),
                                      [](letter const& l) { return l.trouble[0] == '\0'; });
    is_shared_ = in_order && sharing > 0;
  }

  bool is_shared_ = false, is_crowded_ = false;
  std::vector<peer> peers_;  // by rank of the world
};

}  // namespace dtm::comm
