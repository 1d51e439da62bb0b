#include "plan_program.hpp"

template example::plan example::plan_all<dtm::host, float>(example::options const&);
template example::plan example::plan_all<dtm::cuda, float>(example::options const&);
