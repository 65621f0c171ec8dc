// Functions that the compiler can make vectors of. The C library has vector forms too, but one element out of
// range sends its whole vector to a slow path (a softmax with a causal mask runs ten times slower), and a call
// spills all vector registers.
#ifndef GNNPERF_FUNCTIONS
#define GNNPERF_FUNCTIONS
#include <complex>
#include <limits>
namespace {
template <class To, class From> inline To gp_bits(From x) {
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}

// exp(x) = 2^n exp(r) with |r| <= ln(2) / 2, a Taylor polynomial in r, and n added to the exponent's bits.
// Relative error below 3e-7 (float) and 3e-14 (double) with fused multiply-add, 5e-6 and 1e-13 without;
// results below the smallest normal number are zero.
template <class T, class Bits, int degree> inline T gp_exp_of(T x) {
  using limits = std::numeric_limits<T>;
  constexpr T log2 = T(0.693147180559945309417), inverse = T(1.44269504088896340736);
  constexpr T low = log2 * (limits::min_exponent - 1), high = log2 * limits::max_exponent;
  const T below = x < high ? x : high, inside = below > low ? below : low;
  const int32_t n = int32_t(std::nearbyint(inside * inverse));
  const T r = inside - T(n) * log2;
  double factorial = 1;
  for (int k = 2; k <= degree; ++k) factorial *= k;
  T p = T(1 / factorial);
  for (int k = degree; k > 0; --k) {
    factorial /= k;
    p = p * r + T(1 / factorial);
  }
  // In integers, as -ffast-math may take it that nothing is infinite or NaN.
  constexpr Bits infinity = Bits(2 * limits::max_exponent - 1) << (limits::digits - 1);
  const Bits given = gp_bits<Bits>(x), magnitude = given & std::numeric_limits<Bits>::max();
  const Bits scaled = gp_bits<Bits>(p) + Bits(n) * (Bits(1) << (limits::digits - 1));
  const Bits small = x < low ? 0 : scaled, large = x > high ? infinity : small;
  return gp_bits<T>(magnitude > infinity ? given : large);
}
inline float gp_exp(float x) { return gp_exp_of<float, int32_t, 7>(x); }
inline double gp_exp(double x) { return gp_exp_of<double, int64_t, 13>(x); }
template <class T> inline auto gp_exp(T x) { return std::exp(x); }

// x^(halves / 2) by a root and products.
template <int halves, class T> inline auto gp_half_power(T x) {
  using Root = decltype(std::sqrt(x));
  constexpr int n = halves < 0 ? -halves : halves;
  Root p = n % 2 ? std::sqrt(x) : Root(1);
  for (int k = 0; k < n / 2; ++k) p *= x;
  return halves < 0 ? Root(1) / p : p;
}
}  // namespace
#endif
