#pragma once
// The GPU as a device. All local work goes to one stream, in the order of the program, and nothing
// waits for it but copies to the host and finish().
//
//   context<cuda, grid> ctx(world, {1, 2, 2}, 0, {.transport = gpu::transport::staged_mpi});
//
// The thread that makes the context is the one that uses it, since the current device of CUDA is a
// thread's own.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "dtm/backend/context.hpp"
#include "dtm/backend/cuda/device.hpp"
#include "dtm/backend/cuda/group.hpp"
#include "dtm/backend/cuda/launch.hpp"
#include "dtm/backend/cuda/memory.hpp"
#include "dtm/backend/cuda/product.hpp"
#include "dtm/backend/cuda/staging.hpp"

namespace dtm {

namespace gpu::detail {

/// A type as the compiler prints it.
template <class Named>
std::string type_name() {
  std::string const text = __PRETTY_FUNCTION__;
  std::string const before = "Named = ";
  auto const start = text.find(before) + before.size();
  auto const end = text.find_first_of(";]", start);
  return text.substr(start, end - start);
}

/// What lives on the device. Members are freed in the reverse order.
struct parts {
  parts(int device, products multiply, std::size_t workspace) : memory(device, compute.native()) {
    if (multiply == products::cublas)
      blas.emplace(compute.native(), workspace > 0 ? memory.allocate(workspace) : nullptr,
                   workspace);
  }

  stream compute;
  stream aside;  // for what a captured graph must not contain
  event joint;
  pool memory;
  staging buffers;
  std::optional<cublas> blas;
};

}  // namespace gpu::detail

template <>
class backend<cuda> {
 public:
  struct options {
    int device = -1;  // its number; -1: the ranks of a machine take its devices in turn
    gpu::transport transport = gpu::transport::nccl;
    gpu::products products = gpu::products::cublas;
    std::size_t workspace = std::size_t(32) << 20;  // bytes for cuBLAS; what Hopper wants
  };

  backend(comm::world& ranks, options chosen, comm::call_site where = comm::call_site::current())
      : ranks_(ranks), chosen_(chosen) {
    namespace part = gpu::detail;
    part::same_options(ranks, option_text(), where);
    auto const here = part::this_machine();
    int const turn = part::rank_on_machine(ranks, here, where);
    facts_ = comm::agree(
        ranks, [&] { return part::select(chosen_.device, turn, where); }, where);
    part::refuse_shared(ranks, here, facts_, chosen_.transport, where);
    comm::agree(
        ranks,
        [&] {
          parts_ =
              std::make_unique<part::parts>(facts_.ordinal, chosen_.products, chosen_.workspace);
        },
        where);
    parts_->memory.spoil_released(ranks.level() >= comm::check_level::signatures);
  }
  backend(backend const&) = delete;
  backend& operator=(backend const&) = delete;
  ~backend() {
    groups_.reset();
    if (parts_ == nullptr || is_quiet()) return;
    std::fprintf(stderr, "dtm cuda: work on %s does not end; its memory is kept\n",
                 facts_.text().c_str());
    // freeing it would wait for ever
    comm::detail::keep_until_exit(std::shared_ptr<gpu::detail::parts>(std::move(parts_)));
  }

  void attach(memory& storage) {
    storage.owner = this;
    storage.allocate = [](void* self, std::size_t bytes) {
      return static_cast<backend*>(self)->parts_->memory.allocate(bytes);
    };
    storage.release = [](void* self, void* pointer, std::size_t) noexcept {
      static_cast<backend*>(self)->parts_->memory.release(pointer);
    };
    storage.copy = [](void* self, void* to, void const* from, std::size_t bytes,
                      copy_direction direction) {
      static_cast<backend*>(self)->copy(to, from, bytes, direction);
    };
    storage.fill = [](void* self, void* to, unsigned char value, std::size_t bytes) {
      gpu::check(cudaMemsetAsync(to, value, bytes, static_cast<backend*>(self)->compute()),
                 "cudaMemsetAsync");
    };
  }
  void connect(comm::mesh_groups& groups, memory& storage) {
    groups_ =
        std::make_unique<gpu::cuda_groups>(ranks_, groups, storage, compute(), chosen_.transport);
  }
  gpu::cuda_group& along(comm::mesh_groups&, unsigned axis_mask) {
    return groups_->along(axis_mask);
  }

  template <class Kernel>
  void launch(std::int64_t blocks, Kernel const& kernel) {
    static_assert(std::is_trivially_copyable_v<Kernel> && sizeof(Kernel) <= 4096,
                  "dtm kernel: a kernel is copied to the device; its members are plain data, 4 KiB "
                  "at most");
    if (blocks == 0) return;
    if (blocks < 0 || blocks > gpu::most_launched)
      throw argument_error("dtm cuda: kernel " + gpu::detail::type_name<Kernel>() +
                           " was launched with " + std::to_string(blocks) + " blocks; 0 to " +
                           std::to_string(gpu::most_launched) + " are possible");
    cudaError_t const status = gpu::launch_kernel(compute(), blocks, kernel);
    if (status != cudaSuccess)
      gpu::check(status, "the launch of kernel " + gpu::detail::type_name<Kernel>());
  }

  /// Waits until the device has done everything it was given.
  void finish() {
    refuse_captured("waiting for the device");
    groups_->finish();
  }

  // ---- for reports and tests ----
  /// "NVIDIA H100 (device 2 of 8, compute capability 9.0), NCCL, cuBLAS"
  std::string describe() const { return facts_.text() + ", " + option_text(); }
  gpu::device_facts const& facts() const { return facts_; }
  options const& chosen() const { return chosen_; }
  gpu::pool::account const& memory_account() const { return parts_->memory.numbers(); }
  /// Grows during the first two steps of a training and not after them.
  std::int64_t driver_allocations() const { return parts_->memory.numbers().driver_allocations; }

  // ---- for what works on the device ----
  cudaStream_t compute() const { return parts_->compute.native(); }
  gpu::detail::cublas const& cublas() const { return *parts_->blas; }
  gpu::pool& pool() { return parts_->memory; }
  bool capturing() const { return capturing_; }
  comm::world& ranks() { return ranks_; }

  /// Waits as the library does: others hear that this rank waits, a failure of theirs and the
  /// deadline end it.
  template <class Complete>
  void wait(Complete&& complete, char const* what) {
    groups_->wait_until(complete, comm::make_signature({what}, "device", 0, "", 0));
  }

  /// What is given to the device until end_capture() becomes a graph and does not run. Memory comes
  /// from `kept` and goes there.
  void begin_capture(gpu::pool::region& kept) {
    refuse_captured("capturing a graph");
    gpu::check(cudaStreamBeginCapture(compute(), cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture");
    parts_->memory.enter(kept, parts_->aside.native());
    capturing_ = true;
  }
  /// Whoever calls it owns the graph.
  cudaGraph_t end_capture() {
    parts_->memory.leave();
    capturing_ = false;
    cudaGraph_t graph = nullptr;
    gpu::check(cudaStreamEndCapture(compute(), &graph), "cudaStreamEndCapture");
    // memory that came from the driver meanwhile is there before the first replay
    gpu::order(parts_->aside.native(), compute(), parts_->joint);
    return graph;
  }
  void abandon_capture() noexcept {
    if (!capturing_) return;
    parts_->memory.leave();
    capturing_ = false;
    cudaGraph_t graph = nullptr;
    gpu::forget(cudaStreamEndCapture(compute(), &graph));
    if (graph != nullptr) gpu::forget(cudaGraphDestroy(graph));
    try {
      gpu::order(parts_->aside.native(), compute(), parts_->joint);
    } catch (device_error const&) {  // the next call says it again
    }
  }

 private:
  std::string option_text() const {
    return name(chosen_.transport) +
           std::string(chosen_.products == gpu::products::cublas ? ", cuBLAS" : ", own products");
  }

  void refuse_captured(char const* what) const {
    if (capturing_)
      throw argument_error("dtm cuda: " + std::string(what) +
                           " cannot be a part of a graph: a replay would not do it; do it before "
                           "or after capture()");
  }

  void copy(void* to, void const* from, std::size_t bytes, copy_direction direction) {
    auto const patiently = [&](auto const& passed) { wait(passed, "copy"); };
    switch (direction) {
      case copy_direction::within:
        return gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, compute()),
                          "cudaMemcpyAsync within the device");
      case copy_direction::to_host:
        refuse_captured("a copy to the host");
        return parts_->buffers.to_host(to, from, bytes, compute(), patiently);
      case copy_direction::from_host:
        refuse_captured("a copy from the host");
        return parts_->buffers.to_device(to, from, bytes, compute(), patiently);
    }
  }

  /// Whether the device has come to rest, for which it gets the deadline; a second where the world
  /// has failed and a peer may be gone.
  bool is_quiet() noexcept {
    auto const start = comm::clock::now();
    try {
      for (comm::patience patience;; patience.pause()) {
        if (parts_->compute.idle() && parts_->aside.idle()) return true;
        double const limit = ranks_.has_failed() ? 1 : ranks_.settings().deadline_seconds;
        if (limit > 0 && comm::seconds_since(start) > limit) return false;
      }
    } catch (std::exception const&) {
      return true;  // a broken device waits for nobody
    }
  }

  comm::world& ranks_;
  options chosen_;
  gpu::device_facts facts_;
  std::unique_ptr<gpu::detail::parts> parts_;
  std::unique_ptr<gpu::cuda_groups> groups_;
  bool capturing_ = false;
};

}  // namespace dtm
