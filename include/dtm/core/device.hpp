#pragma once
// The devices a tensor can live on. Empty tags: a backend header says what they can do.

namespace dtm {

struct host {};      // CPU memory, Eigen, MPI
struct cuda {};      // GPU memory, kernels, NCCL
struct emulated {};  // the same kernels on the CPU, MPI: a test instrument

}  // namespace dtm
