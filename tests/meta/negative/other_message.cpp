#if DTM_CASE == 1
// case 1: sky is green
static_assert(false, "sky is blue");
#endif
