template <int Got, int Wanted>
struct numbers_are_equal {
  static_assert(Got == Wanted, "numbers differ");
};

#if DTM_CASE == 0
template struct numbers_are_equal<1, 1>;
#elif DTM_CASE == 1
// case 1: numbers_are_equal<1, 2>
// case 1: error: .*numbers differ
template struct numbers_are_equal<1, 2>;
#elif DTM_CASE == 2
// case 2: numbers differ
template struct numbers_are_equal<2, 1>;
#endif
