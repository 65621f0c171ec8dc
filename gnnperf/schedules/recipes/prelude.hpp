// What code emitted by gnnperf calls. GCC 12 or newer, C++17.
#ifndef GNNPERF_PRELUDE
#define GNNPERF_PRELUDE
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#include <omp.h>
namespace {
template <class A, class B> using common = typename std::common_type<A, B>::type;

template <class A, class B> inline common<A, B> gp_min(A a, B b) { return a < b ? a : b; }
template <class A, class B> inline common<A, B> gp_max(A a, B b) { return a > b ? a : b; }
template <class A> inline A gp_abs(A a) { return a < A(0) ? A(-a) : a; }
template <class A> inline A gp_sign(A a) { return (A(0) < a) - (a < A(0)); }

template <class A> inline int gp_popcount(A a) {
  return sizeof(A) > 4 ? __builtin_popcountll(a) : __builtin_popcount(a);
}

// Division that rounds towards minus infinity, and its remainder, as in Python.
template <class A, class B> inline common<A, B> gp_floordiv(A x, B y) {
  const common<A, B> a = x, b = y;
  if constexpr (std::is_floating_point<common<A, B>>::value) {
    return std::floor(a / b);
  } else {
    if (__builtin_constant_p(y) && b > 0 && (b & (b - 1)) == 0) return a >> __builtin_ctzll(b);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
}
// A power in sizes and subscripts: of integers, an integer.
template <class A, class B> inline auto gp_whole_pow(A x, B n) {
  if constexpr (std::is_integral<A>::value && std::is_integral<B>::value) {
    if (__builtin_constant_p(x) && x == 2) return int64_t(1) << (n > 0 ? n : 0);  // loops end there, or begin
    int64_t result = 1;
    for (B i = 0; i < n; ++i) result *= x;
    return result;
  } else {
    return std::pow(x, n);
  }
}
template <class A, class B> inline common<A, B> gp_mod(A x, B y) {
  const common<A, B> a = x, b = y;
  if constexpr (std::is_floating_point<common<A, B>>::value) {
    return a - b * std::floor(a / b);
  } else {
    if (__builtin_constant_p(y) && b > 0 && (b & (b - 1)) == 0) return a & (b - 1);
    // What wraps around at an end is at most one period away. No vector unit divides numbers of 64 bits, so
    // this branch keeps no loop from being vectorized.
    if ((sizeof(a) == 8 || !__builtin_constant_p(y)) && b > 0) {
      const common<A, B> once = a >= b ? a - b : a < 0 ? a + b : a;
      if (__builtin_expect(once >= 0 && once < b, 1)) return once;
    }
    const common<A, B> r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
}

// The first row of a thread, when every thread gets the same share of rows plus inner iterations, found by
// binary search in the row starts. Where these do not ascend, the shares are uneven, but still a partition.
template <class Start, class Stop>
inline int64_t balanced_row(Start start, Stop stop, int64_t first, int64_t last, int64_t thread, int64_t threads) {
  if (thread >= threads) return last;
  const int64_t work = last > first ? stop(last - 1) - start(first) + last - first : 0;
  int64_t row = first;
  for (int64_t t = 1; t <= thread; ++t) {
    int64_t lo = first, hi = last;
    while (lo < hi) {
      const int64_t mid = lo + (hi - lo) / 2;
      if (start(mid) - start(first) + mid - first < t * work / threads) lo = mid + 1; else hi = mid;
    }
    row = lo > row ? lo : row;
  }
  return row;
}

// So many bytes after the start of a page, in memory with two pages to spare.
template <class T> inline T* in_page(T* memory, int bytes) {
  return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(memory) + 4095) / 4096 * 4096 + bytes);
}

// Vectors: GCC extensions, loaded and stored without alignment.
template <class T, int N> struct vec_of { typedef T type __attribute__((vector_size(N * sizeof(T)))); };
template <class T, int N> using vec = typename vec_of<T, N>::type;

template <int N, class T> inline vec<T, N> load(const T* p) {
  vec<T, N> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T, int... L>
inline vec<T, sizeof...(L)> gather_lanes(const T* p, int64_t stride, std::integer_sequence<int, L...>) {
  return vec<T, sizeof...(L)>{p[L * stride]...};  // a loop over lanes would go through memory
}
template <int bytes> struct index_of_size {};
template <> struct index_of_size<1> { typedef int8_t type; };
template <> struct index_of_size<2> { typedef int16_t type; };
template <> struct index_of_size<4> { typedef int32_t type; };
template <> struct index_of_size<8> { typedef int64_t type; };
// Every second element: two loads and a shuffle. The second load ends with the last element that is wanted.
template <class T, int... L>
inline vec<T, sizeof...(L)> every_second(const T* p, std::integer_sequence<int, L...>) {
  constexpr int N = sizeof...(L);
  using index = typename index_of_size<sizeof(T)>::type;
  const vec<T, N> low = load<N>(p), high = load<N>(p + N - 1);
  return __builtin_shuffle(low, high, vec<index, N>{(L < N / 2 ? 2 * L : 2 * L + 1)...});
}
template <int N, class T> inline vec<T, N> gather(const T* p, int64_t stride) {
  if constexpr (N > 1 && std::is_arithmetic<T>::value) {
    if (stride == 2) return every_second(p, std::make_integer_sequence<int, N>());
  }
  return gather_lanes(p, stride, std::make_integer_sequence<int, N>());
}
template <class T, class V> inline void store(T* p, V v) { std::memcpy(p, &v, sizeof v); }

// A store that goes past the caches, where the machine has one and the address is aligned for it.
typedef long long gp_line __attribute__((vector_size(64), may_alias));
typedef long long gp_half_line __attribute__((vector_size(32), may_alias));
template <class T, class V> inline void stream(T* p, V v) {
#ifdef __AVX512F__
  if constexpr (sizeof v == 64) {
    if (reinterpret_cast<uintptr_t>(p) % 64 == 0) {
      __builtin_ia32_movntdq512(reinterpret_cast<gp_line*>(p), (gp_line)v);
      return;
    }
  }
#endif
#ifdef __AVX__
  if constexpr (sizeof v == 32) {
    if (reinterpret_cast<uintptr_t>(p) % 32 == 0) {
      __builtin_ia32_movntdq256(reinterpret_cast<gp_half_line*>(p), (gp_half_line)v);
      return;
    }
  }
#endif
  store(p, v);
}
// Such stores are ordered by nothing else.
inline void stream_fence() {
#ifdef __SSE__
  __builtin_ia32_sfence();
#endif
}

template <class V, class T> inline V splat(T x) { return V{} + x; }
template <class V> inline V vec_min(V a, V b) { return b < a ? b : a; }
template <class V> inline V vec_max(V a, V b) { return b > a ? b : a; }

// All lanes combined.
template <int N, class V, class F> inline auto fold(V v, F combine) {
  auto r = v[0];
  for (int l = 1; l < N; ++l) r = combine(r, v[l]);
  return r;
}
template <int N, class V> inline auto fold_add(V v) { return fold<N>(v, [](auto a, auto b) { return a + b; }); }
template <int N, class V> inline auto fold_mul(V v) { return fold<N>(v, [](auto a, auto b) { return a * b; }); }
template <int N, class V> inline auto fold_min(V v) { return fold<N>(v, [](auto a, auto b) { return gp_min(a, b); }); }
template <int N, class V> inline auto fold_max(V v) { return fold<N>(v, [](auto a, auto b) { return gp_max(a, b); }); }

// A function of each lane, left to the compiler's vectoriser (vector exp, log, ...).
template <class T, int N, class F> inline vec<T, N> lanewise(vec<T, N> a, F f) {
  alignas(64) T t[N];
  std::memcpy(t, &a, sizeof a);
  #pragma omp simd
  for (int l = 0; l < N; ++l) t[l] = f(t[l]);
  std::memcpy(&a, t, sizeof a);
  return a;
}
template <class T, int N, class F> inline vec<T, N> lanewise(vec<T, N> a, vec<T, N> b, F f) {
  alignas(64) T t[N], u[N];
  std::memcpy(t, &a, sizeof a);
  std::memcpy(u, &b, sizeof b);
  #pragma omp simd
  for (int l = 0; l < N; ++l) t[l] = f(t[l], u[l]);
  std::memcpy(&a, t, sizeof a);
  return a;
}
}  // namespace
#endif
