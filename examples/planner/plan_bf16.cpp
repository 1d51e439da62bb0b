#include "plan_program.hpp"

template example::plan example::plan_all<dtm::host, dtm::bf16>(example::options const&);
template example::plan example::plan_all<dtm::cuda, dtm::bf16>(example::options const&);
