#if DTM_CASE == 1
// case 1: sky is blue
// case 2: sky is grey
static_assert(false, "sky is blue");
#endif
