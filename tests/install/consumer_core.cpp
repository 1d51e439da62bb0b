// A user's program that needs the types only: it is configured with MPI hidden.
#if __has_include(<dtm/dtm.hpp>)
#include <dtm/dtm.hpp>
#endif
#include <dtm/core/errors.hpp>

int main() {}
