#if DTM_CASE == 1
// case 1: sky is blue
static_assert(false, "sky is blue");
static_assert(false, "and so is the sea");
#endif
