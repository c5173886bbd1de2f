// Sums and products of kernels. Integers wrap around, as unsigned ones do:
// overflow of signed ones is undefined. Inlined everywhere, so that loops
// compiled for one instruction set never serve another.
#pragma once

#include <type_traits>

namespace headrace {

template <typename A>
struct ArithmeticOf {
  using type = A;
};
template <typename A>
requires(std::is_integral_v<A> &&
         !std::is_same_v<A, bool>) struct ArithmeticOf<A> {
  using type = std::common_type_t<std::make_unsigned_t<A>, unsigned>;
};

template <typename A>
[[gnu::always_inline]] inline A Plus(A a, A b) {
  using U = typename ArithmeticOf<A>::type;
  return static_cast<A>(static_cast<U>(a) + static_cast<U>(b));
}
template <typename A>
[[gnu::always_inline]] inline A Minus(A a, A b) {
  using U = typename ArithmeticOf<A>::type;
  return static_cast<A>(static_cast<U>(a) - static_cast<U>(b));
}
template <typename A>
[[gnu::always_inline]] inline A Times(A a, A b) {
  using U = typename ArithmeticOf<A>::type;
  return static_cast<A>(static_cast<U>(a) * static_cast<U>(b));
}

}  // namespace headrace
