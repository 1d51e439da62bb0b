#pragma once
// All local operations on devices that launch kernels over blocks: what a device's context needs
// is launch(blocks, kernel) and memory().

#include "dtm/backend/device/attention.hpp"
#include "dtm/backend/device/for_each.hpp"
#include "dtm/backend/device/product.hpp"
#include "dtm/backend/device/rows.hpp"
