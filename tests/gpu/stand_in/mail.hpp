#pragma once
// Messages between processes, over a private duplicate of MPI_COMM_WORLD that is made when the
// program starts MPI. Nothing here blocks. A message is one MPI message, header and content, so
// that whoever receives it knows all about it, also where it does not fit.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace stand_in::mail {

/// A communicator: world rank of whoever made its unique id, and how many that one had made.
using key = std::uint64_t;

enum class type : std::int32_t {
  hello,   // to the maker of the id: a rank wants to join
  table,   // from there: who is who
  refuse,  // from there: why not
  data,    // of an operation
  ack,     // a receive has met its send
  notice,  // this communicator has failed
  goodbye  // ncclCommFinalize
};

struct header {
  key to = 0;
  type what = type::data;
  std::int32_t from = 0;  // rank in the communicator; in the world for hello
  // of the operation
  std::int32_t kind = 0, datatype = 0, reduction = 0, root = 0;
  std::int64_t count = 0, number = 0;
};

struct letter {
  header head;
  std::vector<std::byte> content;
  std::string text() const;
};

bool is_running();
int world_rank();
int world_size();
std::string host();

void post(int to, header const& head, std::span<std::byte const> content);
void post(int to, header const& head, std::string const& text);

/// Takes in what has arrived and gives what was sent its progress. True when something came.
bool progress();

/// Letters of a kind to a communicator from one of its ranks, in the order of sending.
std::deque<letter>& box(key to, type what, int from);
/// Letters of a kind to a communicator, whoever sent them.
std::vector<int> senders(key to, type what);

/// Throws away what has come to a communicator, and what will. Requests to join stay: whoever made
/// the id answers them, also when it has left.
void forget(key to);

}  // namespace stand_in::mail
