// The device's kernels on the CPU: a test instrument, some hundred times slower than the host's own
// code.
#include <dtm/emulated.hpp>

#include "train.hpp"

template example::outcome example::train<dtm::emulated, float>(example::task const&);
