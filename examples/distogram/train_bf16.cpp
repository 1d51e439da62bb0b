#include <dtm/host.hpp>

#include "train.hpp"

template example::outcome example::train<dtm::host, dtm::bf16>(example::task const&);
