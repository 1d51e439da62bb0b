// The device's kernels on the CPU: a test instrument, tens of times slower than the host's own
// code.
#include <dtm/emulated.hpp>

#include "train.hpp"

template example::outcome example::train<dtm::emulated, float>(example::task const&);
