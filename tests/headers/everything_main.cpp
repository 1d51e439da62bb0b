#include "everything.hpp"

int other();

int main() {
  return other();
}
