#if DTM_CASE == 0
static_assert(false, "wrong in the control");
#elif DTM_CASE == 1
// case 1: sky is blue
static_assert(false, "sky is blue");
#endif
