#include "queue.hpp"

#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "arena.hpp"
#include "calls.hpp"
#include "capture.hpp"
#include "mail.hpp"
#include "nccl.hpp"
#include "stand_in.hpp"

namespace stand_in {
namespace {

constexpr double seconds_until_host_counts_as_waiting = 0.005;
constexpr int steps_of_a_query = 8;

struct state {
  std::vector<std::unique_ptr<CUstream_st>> streams;  // in the order of their making
  unsigned long long streams_made = 0;
  bool running = false;  // an operation
  bool emptying = false;
  double host_called = 0;
  std::int64_t enqueued = 0, operations = 0;
  std::mt19937_64 draw;
};
state& the() {
  static auto* const only = [] {
    auto* const s = new state;
    s->draw.seed(the_settings().seed);
    return s;
  }();
  return *only;
}

/// Calls with the flag up, also where an assertion of a test leaves by an exception.
template <class Call>
bool during(bool& flag, Call call) {
  struct scope {
    bool& flag;
    bool before;
    ~scope() { flag = before; }
  } const restore{flag, std::exchange(flag, true)};
  return call();
}

/// Runs the first operation of a stream; true when it is complete.
bool step(CUstream_st& stream) {
  if (stream.queue.empty() || broken_device() != cudaSuccess) return false;
  auto& first = stream.queue.front();
  if (!during(the().running, [&] { return first.run(); })) return false;
  auto const end = first.end;
  stream.queue.pop_front();
  ++the().operations;
  if (end) end->done = true, end->when = now();
  return true;
}

bool run_ahead(CUstream_st& stream, int steps) {
  int done = 0;
  while (done < steps && step(stream)) ++done;
  return done > 0;
}

/// One round. The stream that is waited for runs ahead and the others only move where it is
/// blocked: an ordering that was forgotten is then missing. A seed draws other orders.
bool sweep(CUstream_st* preferred, int steps) {
  auto streams = live_streams();
  bool moved = mail::progress();
  nccl::attend_requests();
  if (the_settings().seed != 0) {
    for (std::size_t i = streams.size(); i > 1; --i) std::swap(streams[i - 1], streams[drawn(i)]);
    for (auto* stream : streams) moved |= run_ahead(*stream, 1 + int(drawn(4)));
  } else {
    if (preferred && run_ahead(*preferred, steps)) return true;
    for (auto* stream : streams)
      if (stream != preferred) moved |= run_ahead(*stream, 1);
  }
  std::erase_if(the().streams, [](auto& s) { return s->destroyed && s->queue.empty(); });
  return moved;
}

[[noreturn]] void give_up(char const* who) {
  std::string text = std::string(who) + " has waited for " +
                     std::to_string(int(the_settings().patience)) + " s; a real one would hang";
  for (auto* stream : live_streams())
    if (!stream->queue.empty())
      text += "\n  stream " + std::to_string(stream->id) + " is at " + stream->queue.front().name +
              ", " + std::to_string(stream->queue.size()) + " operations are queued";
  die(text);
}

/// The default stream and the streams that heed it wait for each other's earlier work.
void keep_default_order(CUstream_st& stream) {
  auto const wait_for = [&](CUstream_st& other) {
    if (other.tail && !other.tail->done)
      append(stream, "order of the default stream", [tail = other.tail] { return tail->done; }, {});
  };
  if (&stream == default_stream()) {
    for (auto* other : live_streams())
      if (other != &stream && other->waits_for_default()) wait_for(*other);
  } else if (stream.waits_for_default()) {
    wait_for(*default_stream());
  }
}

}  // namespace

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

std::size_t drawn(std::size_t limit) {
  return the_settings().seed == 0 || limit == 0 ? 0 : std::size_t(the().draw() % limit);
}

bool an_operation_runs() {
  return the().running;
}
void host_is_alive() {
  the().host_called = now();
}

void host_polls() {
  if (the().emptying || now() - the().host_called < seconds_until_host_counts_as_waiting) return;
  turn(nullptr);
}

// ---- streams -------------------------------------------------------------------------------------

CUstream_st* create_stream(unsigned flags, int priority) {
  auto stream = std::make_unique<CUstream_st>();
  stream->flags = flags;
  stream->priority = priority;
  stream->id = ++the().streams_made;
  stream->device = current_device();
  the().streams.push_back(std::move(stream));
  return the().streams.back().get();
}

CUstream_st* default_stream() {
  static CUstream_st* const only = create_stream(cudaStreamDefault, 0);
  return only;
}

CUstream_st* stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return default_stream();
  if (handle == cudaStreamPerThread) {
    static CUstream_st* const only = create_stream(cudaStreamDefault, 0);
    return only;
  }
  for (auto const& stream : the().streams)
    if (stream.get() == handle && !stream->destroyed) return handle;
  return nullptr;
}

void destroy_stream(CUstream_st* stream) {
  stream->destroyed = true;
  std::erase_if(the().streams, [](auto& s) { return s->destroyed && s->queue.empty(); });
}

std::vector<CUstream_st*> live_streams() {
  std::vector<CUstream_st*> all;
  for (auto const& stream : the().streams) all.push_back(stream.get());
  return all;
}

// ---- operations ----------------------------------------------------------------------------------

void append(CUstream_st& stream, std::string name, poll run, std::shared_ptr<completion> end) {
  stream.queue.push_back({std::move(name), std::move(run), std::move(end)});
  ++the().enqueued;
}

cudaError_t submit(cudaStream_t handle, std::string name, start begin,
                   std::shared_ptr<completion>* end) {
  auto* const stream = stream_of(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (stream->capture) return record(*stream, std::move(name), std::move(begin));
  if (auto const refused = refuse_implicit(*stream)) return refused;
  keep_default_order(*stream);
  stream->tail = std::make_shared<completion>();
  append(*stream, std::move(name), begin(), stream->tail);
  if (end) *end = stream->tail;
  return cudaSuccess;
}

cudaError_t submit_once(cudaStream_t handle, std::string name, std::function<void()> work,
                        std::shared_ptr<completion>* end) {
  auto const begin = [work = std::move(work)]() -> poll { return [work] { return work(), true; }; };
  return submit(handle, std::move(name), begin, end);
}

// ---- who empties the queues ----------------------------------------------------------------------

void wait_until(std::function<bool()> const& ready, CUstream_st* preferred, char const* who) {
  if (ready()) return;
  opened access;
  double const began = now();
  int turns = 0;
  while (!ready() && broken_device() == cudaSuccess) {
    if (during(the().emptying, [&] { return sweep(preferred, 1); })) {
      turns = 0;
      continue;
    }
    if (now() - began > the_settings().patience) give_up(who);
    if (++turns < 20)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  host_is_alive();
}

void drain(CUstream_st& stream, char const* who) {
  wait_until([&] { return stream.queue.empty(); }, &stream, who);
}

void drain_all(char const* who) {
  wait_until([] { return queued() == 0; }, nullptr, who);
}

bool turn(CUstream_st* preferred) {
  if (the().emptying) return false;
  opened access;
  return during(the().emptying, [&] { return sweep(preferred, steps_of_a_query); });
}

// ---- the public part -----------------------------------------------------------------------------

cudaError_t enqueue(cudaStream_t stream, std::function<bool()> operation, std::string name) {
  if (broken_device() != cudaSuccess) return broken_device();
  return returned(submit(stream, std::move(name), [operation] { return operation; }));
}

cudaError_t enqueue_fault(cudaStream_t stream, cudaError_t error) {
  return returned(submit_once(stream, "planted fault", [error] { break_device(error); }));
}

bool progress() {
  return turn(nullptr);
}

void set_seed(std::uint64_t seed) {
  the_settings().seed = seed;
  the().draw.seed(seed);
}

std::size_t queued() {
  std::size_t all = 0;
  for (auto* stream : live_streams()) all += stream->queue.size();
  return all;
}

std::size_t queued(cudaStream_t stream) {
  return stream_of(stream)->queue.size();
}

counts count_operations() {
  counts so_far;
  so_far.enqueued = the().enqueued;
  so_far.operations = the().operations;
  return so_far;
}

void forget_operations() {
  for (auto* stream : live_streams()) {
    for (auto& operation : stream->queue)  // what waits for them must not wait forever
      if (operation.end) operation.end->done = true;
    stream->queue.clear();
    stream->capture.reset();
    stream->frontier.clear();
  }
  the().enqueued = the().operations = 0;
}

}  // namespace stand_in
