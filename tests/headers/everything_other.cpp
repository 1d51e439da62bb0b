#include "everything.hpp"

int other() {
  return 0;
}
