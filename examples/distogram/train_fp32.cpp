#include "train.hpp"

template example::outcome example::train<float>(example::task const&);
