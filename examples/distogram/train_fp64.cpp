#include "train.hpp"

template example::outcome example::train<double>(example::task const&);
