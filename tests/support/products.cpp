// The matrix products of all tests, compiled once.
#include "dtm/backend/host/products.hpp"

DTM_INSTANTIATE_PRODUCTS
