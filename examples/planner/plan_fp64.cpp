#include "plan_program.hpp"

template example::plan example::plan_all<dtm::host, double>(example::options const&);
template example::plan example::plan_all<dtm::cuda, double>(example::options const&);
