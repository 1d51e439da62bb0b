#pragma once
// Kernels over an index on devices that launch kernels over blocks.

#include <cstdint>

#include "dtm/backend/local.hpp"
#include "dtm/core/device.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::local {

template <device_like Device>
struct for_each_impl<Device> {
  template <class Context, class Kernel>
  static void run(Context& ctx, std::int64_t count, Kernel const& kernel) {
    auto const form = kernels::device_form<Kernel>::of(kernel, count);
    if (form.blocks > 0) ctx.launch(form.blocks, form.kernel);
  }
};

}  // namespace dtm::local
