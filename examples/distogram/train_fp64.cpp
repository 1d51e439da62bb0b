#include <dtm/host.hpp>

#include "train.hpp"

template example::outcome example::train<dtm::host, double>(example::task const&);
