#include "mail.hpp"

#include <mpi.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "calls.hpp"
#include "queue.hpp"

namespace stand_in::mail {
namespace {

constexpr int tag = 1;

struct message {
  std::vector<std::byte> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
  bool done = false;
};

struct state {
  MPI_Comm world = MPI_COMM_NULL;
  int rank = 0, size = 1;
  std::deque<std::unique_ptr<message>> sent;
  std::map<int, std::deque<std::unique_ptr<message>>> arriving;  // large ones may be overtaken
  std::map<std::tuple<key, type, int>, std::deque<letter>> boxes;
  std::set<key> forgotten;
};
state& the() {
  static auto* const only = new state;  // MPI may write to what it holds until it has ended
  return *only;
}

void deliver(std::vector<std::byte> const& bytes) {
  letter l;
  std::memcpy(&l.head, bytes.data(), sizeof(header));
  if (l.head.what != type::hello && the().forgotten.contains(l.head.to)) return;
  l.content.assign(bytes.begin() + sizeof(header), bytes.end());
  the().boxes[{l.head.to, l.head.what, l.head.from}].push_back(std::move(l));
}

bool complete(message& m) {
  int done = m.done;
  if (!done) PMPI_Test(&m.request, &done, MPI_STATUS_IGNORE);
  return m.done = done != 0;
}

}  // namespace

std::string letter::text() const {
  return {reinterpret_cast<char const*>(content.data()), content.size()};
}

bool is_running() {
  return the().world != MPI_COMM_NULL;
}
int world_rank() {
  return the().rank;
}
int world_size() {
  return the().size;
}

std::string host() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  PMPI_Get_processor_name(name, &length);
  return {name, std::size_t(length)};
}

void post(int to, header const& head, std::span<std::byte const> content) {
  auto m = std::make_unique<message>();
  m->bytes.resize(sizeof head + content.size());
  std::memcpy(m->bytes.data(), &head, sizeof head);
  if (!content.empty()) std::memcpy(m->bytes.data() + sizeof head, content.data(), content.size());
  if (head.what == type::data && !content.empty() && corrupt_this_message())
    m->bytes.back() ^= std::byte(0x10);
  if (to == the().rank) return deliver(m->bytes);
  if (m->bytes.size() > 2147483647) die("a message of 2 GiB, which no test needs");
  PMPI_Isend(m->bytes.data(), int(m->bytes.size()), MPI_BYTE, to, tag, the().world, &m->request);
  the().sent.push_back(std::move(m));
}

void post(int to, header const& head, std::string const& text) {
  post(to, head, std::as_bytes(std::span(text)));
}

bool progress() {
  if (!is_running()) return false;
  bool moved = false;
  for (;;) {
    int arrived = 0;
    MPI_Message matched;
    MPI_Status status;
    PMPI_Improbe(MPI_ANY_SOURCE, tag, the().world, &arrived, &matched, &status);
    if (!arrived) break;
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    auto m = std::make_unique<message>();
    m->bytes.resize(std::size_t(bytes));
    PMPI_Imrecv(m->bytes.data(), bytes, MPI_BYTE, &matched, &m->request);
    the().arriving[status.MPI_SOURCE].push_back(std::move(m));
  }
  for (auto& [source, queue] : the().arriving) {
    while (!queue.empty() && complete(*queue.front())) {
      deliver(queue.front()->bytes);
      queue.pop_front();
      moved = true;
    }
  }
  std::erase_if(the().sent, [](auto& m) { return complete(*m); });
  return moved;
}

std::deque<letter>& box(key to, type what, int from) {
  return the().boxes[{to, what, from}];
}

std::vector<int> senders(key to, type what) {
  std::vector<int> all;
  for (auto const& [address, letters] : the().boxes)
    if (std::get<0>(address) == to && std::get<1>(address) == what && !letters.empty())
      all.push_back(std::get<2>(address));
  return all;
}

void forget(key to) {
  the().forgotten.insert(to);
  std::erase_if(the().boxes, [&](auto const& entry) {
    return std::get<0>(entry.first) == to && std::get<1>(entry.first) != type::hello;
  });
}

namespace {

/// All ranks are here, which is the only time that they need to be.
void begin() {
  PMPI_Comm_dup(MPI_COMM_WORLD, &the().world);
  PMPI_Comm_rank(the().world, &the().rank);
  PMPI_Comm_size(the().world, &the().size);
}

/// Small messages still leave, and what nobody waited for is taken in; what is left stays MPI's.
void end() {
  double const until = now() + 0.2;
  for (progress(); !the().sent.empty() && now() < until; progress()) std::this_thread::yield();
  the().world = MPI_COMM_NULL;
}

}  // namespace
}  // namespace stand_in::mail

// The program's own MPI calls come by here: the first to make the duplicate, the last to leave, and
// those with which a host polls to give the streams the time that a GPU would take by itself.
extern "C" {

int MPI_Init(int* argc, char*** argv) {
  int const code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) stand_in::mail::begin();
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  int const code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) stand_in::mail::begin();
  return code;
}

int MPI_Finalize() {
  stand_in::mail::end();
  return PMPI_Finalize();
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  int const code = PMPI_Test(request, flag, status);
  if (!*flag) stand_in::host_polls();
  return code;
}

int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  int const code = PMPI_Testall(count, requests, flag, statuses);
  if (!*flag) stand_in::host_polls();
  return code;
}

int MPI_Iprobe(int source, int number, MPI_Comm comm, int* flag, MPI_Status* status) {
  int const code = PMPI_Iprobe(source, number, comm, flag, status);
  if (!*flag) stand_in::host_polls();
  return code;
}

int MPI_Improbe(int source, int number, MPI_Comm comm, int* flag, MPI_Message* message,
                MPI_Status* status) {
  int const code = PMPI_Improbe(source, number, comm, flag, message, status);
  if (!*flag) stand_in::host_polls();
  return code;
}

}  // extern "C"
