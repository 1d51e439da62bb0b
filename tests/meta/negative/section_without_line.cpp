#if DTM_CASE == 1
// case 1: sky is blue
static_assert(false, "sky is blue");
#elif DTM_CASE == 2
static_assert(false, "sky is grey");
#endif
