#pragma once
// The devices a tensor can live on. Tags: a backend header says what they can do.

namespace dtm {

struct host {  // CPU memory, MPI
  static constexpr char const* name = "host";
};
struct cuda {  // GPU memory, kernels, NCCL
  static constexpr char const* name = "cuda";
};
struct emulated {  // the same kernels on the CPU, MPI: a test instrument
  static constexpr char const* name = "emulated";
};

/// A device that is not there: what `Device` would allocate, launch and exchange, without data
/// (dtm/planned.hpp).
template <class Device>
struct planned {
  using of = Device;
  static constexpr char const* name = Device::name;
};

/// Whether a tensor of the device has elements that can be read.
template <class Device>
inline constexpr bool has_values = true;
template <class Device>
inline constexpr bool has_values<planned<Device>> = false;

template <class Device>
inline constexpr bool runs_kernels = false;
template <>
inline constexpr bool runs_kernels<cuda> = true;
template <>
inline constexpr bool runs_kernels<emulated> = true;
template <class Device>
inline constexpr bool runs_kernels<planned<Device>> = runs_kernels<Device>;

/// A device whose context launches kernels over blocks: ctx.launch(blocks, kernel).
template <class Device>
concept device_like = runs_kernels<Device>;

}  // namespace dtm
