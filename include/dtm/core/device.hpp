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

template <class Device>
inline constexpr bool runs_kernels = false;
template <>
inline constexpr bool runs_kernels<cuda> = true;
template <>
inline constexpr bool runs_kernels<emulated> = true;

/// A device whose context launches kernels over blocks: ctx.launch(blocks, kernel).
template <class Device>
concept device_like = runs_kernels<Device>;

}  // namespace dtm
