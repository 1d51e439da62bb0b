#if DTM_CASE == 1
// case 1: sky is blue
#endif
