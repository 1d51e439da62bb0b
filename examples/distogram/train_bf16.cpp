#include "train.hpp"

template example::outcome example::train<dtm::bf16>(example::task const&);
