#ifndef GNNPERF_PRELUDE
#define GNNPERF_PRELUDE
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>
#include <omp.h>
namespace {
template <class A, class B> inline typename std::common_type<A, B>::type gp_min(A a, B b) { return a < b ? a : b; }
template <class A, class B> inline typename std::common_type<A, B>::type gp_max(A a, B b) { return a > b ? a : b; }
template <class A> inline A gp_abs(A a) { return a < A(0) ? A(-a) : a; }
template <class A> inline A gp_sign(A a) { return (A(0) < a) - (a < A(0)); }
template <class T> inline T gp_fdiv(T a, T b, std::true_type) { return std::floor(a / b); }
template <class T> inline T gp_fdiv(T a, T b, std::false_type) {
  const T q = a / b; return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
template <class T> inline T gp_fmod(T a, T b, std::true_type) { return a - b * std::floor(a / b); }
template <class T> inline T gp_fmod(T a, T b, std::false_type) {
  const T r = a % b; return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
template <class A, class B> inline typename std::common_type<A, B>::type gp_floordiv(A a, B b) {
  using T = typename std::common_type<A, B>::type; return gp_fdiv<T>(a, b, std::is_floating_point<T>());
}
template <class A, class B> inline typename std::common_type<A, B>::type gp_mod(A a, B b) {
  using T = typename std::common_type<A, B>::type; return gp_fmod<T>(a, b, std::is_floating_point<T>());
}
// Vectors: GCC extensions, loaded and stored without alignment.
template <class T, int N> struct vec_of { typedef T type __attribute__((vector_size(N * sizeof(T)))); };
template <class T, int N> using vec = typename vec_of<T, N>::type;
template <int N, class T> inline vec<T, N> load(const T* p) { vec<T, N> v; std::memcpy(&v, p, sizeof v); return v; }
template <class T, class V> inline void store(T* p, V v) { std::memcpy(p, &v, sizeof v); }
template <class V, class T> inline V splat(T x) { return V{} + x; }
template <class V> inline V vec_min(V a, V b) { return b < a ? b : a; }
template <class V> inline V vec_max(V a, V b) { return b > a ? b : a; }
template <int N, class V> inline auto fold_add(V v) { auto r = v[0]; for (int l = 1; l < N; ++l) r += v[l]; return r; }
template <int N, class V> inline auto fold_mul(V v) { auto r = v[0]; for (int l = 1; l < N; ++l) r *= v[l]; return r; }
template <int N, class V> inline auto fold_min(V v) { auto r = v[0]; for (int l = 1; l < N; ++l) r = v[l] < r ? v[l] : r; return r; }
template <int N, class V> inline auto fold_max(V v) { auto r = v[0]; for (int l = 1; l < N; ++l) r = v[l] > r ? v[l] : r; return r; }
template <class T, int N, class F> inline vec<T, N> lanewise(vec<T, N> a, F f) {
  alignas(64) T t[N]; std::memcpy(t, &a, sizeof a);
  #pragma omp simd
  for (int l = 0; l < N; ++l) t[l] = f(t[l]);
  std::memcpy(&a, t, sizeof a); return a;
}
template <class T, int N, class F> inline vec<T, N> lanewise(vec<T, N> a, vec<T, N> b, F f) {
  alignas(64) T t[N], u[N]; std::memcpy(t, &a, sizeof a); std::memcpy(u, &b, sizeof b);
  #pragma omp simd
  for (int l = 0; l < N; ++l) t[l] = f(t[l], u[l]);
  std::memcpy(&a, t, sizeof a); return a;
}
}  // namespace
#endif
