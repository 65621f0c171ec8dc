// Fourier transforms of rows of any length: Stockham's, in stages of few points (Cochran et al., "What is the fast
// Fourier transform?", Proc. IEEE, 1967); where the length has a large prime, as a convolution (Bluestein, "A linear
// filtering approach to the computation of the discrete Fourier transform", 1970). Real and imaginary parts lie apart
// meanwhile, so that loops are vectors.
#ifndef GNNPERF_FOURIER
#define GNNPERF_FOURIER
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>
#define GP_INLINE __attribute__((always_inline))
namespace {
namespace gp_fourier {
constexpr int64_t LONG = 1 << 14;  // elements; of fewer, threads would wait for each other after every stage

// Where the elements of some columns lie: as complex numbers, rows STEP of them apart, as real numbers, or in parts.
template <class T, int64_t STEP>
struct Complex {
  T* at;
  GP_INLINE T re(int64_t row, int64_t column) const { return at[2 * (row * STEP + column)]; }
  GP_INLINE T im(int64_t row, int64_t column) const { return at[2 * (row * STEP + column) + 1]; }
  GP_INLINE void set(int64_t row, int64_t column, T re, T im) const {
    at[2 * (row * STEP + column)] = re;
    at[2 * (row * STEP + column) + 1] = im;
  }
};
template <class T, int64_t STEP>
struct Real {
  const T* at;
  GP_INLINE T re(int64_t row, int64_t column) const { return at[row * STEP + column]; }
  GP_INLINE int im(int64_t, int64_t) const { return 0; }
};
template <class T, int64_t COLUMNS>
struct Parts {
  T *real, *imaginary;
  GP_INLINE T re(int64_t row, int64_t column) const { return real[row * COLUMNS + column]; }
  GP_INLINE T im(int64_t row, int64_t column) const { return imaginary[row * COLUMNS + column]; }
  GP_INLINE void set(int64_t row, int64_t column, T re, T im) const {
    real[row * COLUMNS + column] = re;
    imaginary[row * COLUMNS + column] = im;
  }
};

// What one of several threads does of it.
struct Share {
  int64_t thread, threads;
  int64_t begin(int64_t n) const { return n * thread / threads; }
  int64_t end(int64_t n) const { return n * (thread + 1) / threads; }
  void meet() const {
    if (threads > 1) {
#pragma omp barrier
    }
  }
};

template <class F, int... K>
GP_INLINE inline void each_of(std::integer_sequence<int, K...>, F f) {
  (f(std::integral_constant<int, K>()), ...);
}
template <int N, class F>
GP_INLINE inline void each(F f) {
  each_of(std::make_integer_sequence<int, N>(), f);
}

constexpr double circle(double part) { return 6.283185307179586476925 * part; }

// y[k] = sum over j of x[D j] exp(SIGN 2 pi i j k / R).
template <int R, int D, int SIGN, class T>
GP_INLINE inline void points(const T* xr, const T* xi, T* yr, T* yi) {
  if constexpr (R == 1) {
    yr[0] = xr[0], yi[0] = xi[0];
  } else if constexpr (R % 2 == 0) {
    T er[R / 2], ei[R / 2], fr[R / 2], fi[R / 2];
    points<R / 2, 2 * D, SIGN>(xr, xi, er, ei);
    points<R / 2, 2 * D, SIGN>(xr + D, xi + D, fr, fi);
    each<R / 2>([&](auto k) GP_INLINE {
      const T c = T(std::cos(circle(double(k) / R))), s = T(SIGN * std::sin(circle(double(k) / R)));
      T tr = fr[k], ti = fi[k];
      if constexpr (4 * k == R)
        tr = -SIGN * fi[k], ti = SIGN * fr[k];
      else if constexpr (k > 0)
        tr = c * fr[k] - s * fi[k], ti = c * fi[k] + s * fr[k];
      yr[k] = er[k] + tr, yi[k] = ei[k] + ti;
      yr[k + R / 2] = er[k] - tr, yi[k + R / 2] = ei[k] - ti;
    });
  } else {
    yr[0] = xr[0], yi[0] = xi[0];
    each<R / 2>([&](auto j) GP_INLINE {
      yr[0] += xr[D * (j + 1)] + xr[D * (R - 1 - j)];
      yi[0] += xi[D * (j + 1)] + xi[D * (R - 1 - j)];
    });
    each<R / 2>([&](auto before) GP_INLINE {
      constexpr int k = before + 1;
      T er = xr[0], ei = xi[0], fr = 0, fi = 0;
      each<R / 2>([&](auto earlier) GP_INLINE {
        constexpr int j = earlier + 1, turn = j * k % R;
        const T c = T(std::cos(circle(double(turn) / R))), s = T(SIGN * std::sin(circle(double(turn) / R)));
        er += c * (xr[D * j] + xr[D * (R - j)]), ei += c * (xi[D * j] + xi[D * (R - j)]);
        fr -= s * (xi[D * j] - xi[D * (R - j)]), fi += s * (xr[D * j] - xr[D * (R - j)]);
      });
      yr[k] = er + fr, yi[k] = ei + fi;
      yr[R - k] = er - fr, yi[R - k] = ei - fi;
    });
  }
}

// exp(sign 2 pi i part / whole): cosines and sines, one after the other.
template <class T, class F>
std::vector<T> turns_of(int64_t count, int64_t whole, int sign, F part) {
  std::vector<T> found(2 * count);
  for (int64_t i = 0; i < count; ++i) {
    const double angle = circle(double(part(i) % whole) / double(whole));
    found[i] = T(std::cos(angle)), found[count + i] = T(sign * std::sin(angle));
  }
  return found;
}

// to[d + DONE (k + R p)] = turn(p k / (R LEFT)) times the sum over j of turn(j k / R) from[d + DONE (p + LEFT j)].
template <int R, int64_t LEFT, int64_t DONE, int64_t COLUMNS, int SIGN, class T, class From, class To>
void stage(const From from, const To to, const T factor, const Share share) {
  static const std::vector<T> turns =
      turns_of<T>(R * LEFT, R * LEFT, SIGN, [](int64_t i) { return i / LEFT * (i % LEFT); });
  const T *const turn_r = turns.data(), *const turn_i = turn_r + R * LEFT;
  const auto turned = [=](int64_t p, T* wr, T* wi) GP_INLINE {
    each<R>([&](auto k) GP_INLINE { wr[k] = turn_r[k * LEFT + p], wi[k] = turn_i[k * LEFT + p]; });
  };
  const auto at = [=](int64_t p, int64_t d, int64_t column, const T* wr, const T* wi) GP_INLINE {
    T xr[R], xi[R], yr[R], yi[R];
    each<R>([&](auto j) GP_INLINE {
      xr[j] = from.re(d + DONE * (p + LEFT * j), column), xi[j] = from.im(d + DONE * (p + LEFT * j), column);
    });
    points<R, 1, SIGN>(xr, xi, yr, yi);
    each<R>([&](auto k) GP_INLINE {
      const int64_t row = d + DONE * (k + R * p);
      if constexpr (LEFT == 1)
        to.set(row, column, factor * yr[k], factor * yi[k]);
      else if constexpr (k == 0)
        to.set(row, column, yr[0], yi[0]);
      else
        to.set(row, column, yr[k] * wr[k] - yi[k] * wi[k], yr[k] * wi[k] + yi[k] * wr[k]);
    });
  };
  const bool alone = LEFT == 1;  // then threads share what is done
  const int64_t first = alone ? 0 : share.begin(LEFT), last = alone ? 1 : share.end(LEFT);
  const int64_t low = alone ? share.begin(DONE) : 0, high = alone ? share.end(DONE) : DONE;
  if constexpr (COLUMNS == 1 && DONE == 1) {
#pragma omp simd
    for (int64_t p = first; p < last; ++p) {
      T wr[R], wi[R];
      turned(p, wr, wi);
      at(p, 0, 0, wr, wi);
    }
  } else {
    for (int64_t p = first; p < last; ++p) {
      T wr[R], wi[R];
      turned(p, wr, wi);
      if constexpr (COLUMNS > 1) {
        for (int64_t d = low; d < high; ++d)
#pragma omp simd
          for (int64_t column = 0; column < COLUMNS; ++column) at(p, d, column, wr, wi);
      } else {
#pragma omp simd
        for (int64_t d = low; d < high; ++d) at(p, d, 0, wr, wi);
      }
    }
  }
  share.meet();
}

// The stages of these many points, by way of two places in turn.
template <int SIGN, int64_t COLUMNS, int64_t DONE, int R, int... REST, class T, class From, class To, class Between>
void stages(const From from, const To to, const Between one, const Between other, const T factor, const Share share) {
  constexpr int64_t left = (int64_t(1) * ... * REST);
  if constexpr (left == 1) {
    stage<R, 1, DONE, COLUMNS, SIGN>(from, to, factor, share);
  } else {
    stage<R, left, DONE, COLUMNS, SIGN>(from, one, factor, share);
    stages<SIGN, COLUMNS, DONE * R, REST...>(one, to, other, one, factor, share);
  }
}

// Does it with room for some elements, by the threads of OpenMP where it takes long and they have nothing to do.
template <class T, int64_t ROOM, class Work>
void with_room(int64_t elements, Work work) {
  static thread_local std::unique_ptr<T[]> held;
  if (!held) held.reset(new T[ROOM]);
  T* const room = held.get();
  if (elements < LONG || omp_in_parallel()) {
    work(room, Share{0, 1});
  } else {
#pragma omp parallel
    work(room, Share{omp_get_thread_num(), omp_get_num_threads()});
  }
}

// Of a number of rows that is the product of R.
template <int SIGN, int64_t COLUMNS, int... R, class T, class From, class To>
void transform(const From from, const To to, const T factor) {
  constexpr int64_t size = (COLUMNS * ... * R);
  with_room<T, 4 * size>(size, [=](T* room, Share share) {
    const Parts<T, COLUMNS> one{room, room + size}, other{room + 2 * size, room + 3 * size};
    stages<SIGN, COLUMNS, 1, R...>(from, to, one, other, factor, share);
  });
}

// Of twice as many real numbers, which are taken for as many complex ones.
template <int... R, class T, class To>
void transform_of_real(const T* const from, const To to, const T factor) {
  constexpr int64_t half = (int64_t(1) * ... * R);
  static const std::vector<T> turns = turns_of<T>(half, 2 * half, -1, [](int64_t i) { return i; });
  with_room<T, 6 * half>(2 * half, [=](T* room, Share share) {
    const Parts<T, 1> one{room, room + half}, other{room + 2 * half, room + 3 * half};
    const Parts<T, 1> both{room + 4 * half, room + 5 * half};
    stages<-1, 1, 1, R...>(Complex<const T, 1>{from}, both, one, other, factor, share);
    const T *const cosine = turns.data(), *const sine = cosine + half, *const r = both.real, *const i = both.imaginary;
    if (share.thread == 0) {
      to.set(0, 0, r[0] + i[0], 0);
      to.set(half, 0, r[0] - i[0], 0);
    }
#pragma omp simd
    for (int64_t k = 1 + share.begin(half - 1); k < 1 + share.end(half - 1); ++k) {
      const T er = (r[k] + r[half - k]) / 2, ei = (i[k] - i[half - k]) / 2;  // of even places
      const T fr = (i[k] + i[half - k]) / 2, fi = (r[half - k] - r[k]) / 2;  // of odd ones
      const T re = er + fr * cosine[k] - fi * sine[k], im = ei + fr * sine[k] + fi * cosine[k];
      to.set(k, 0, re, im);
      to.set(2 * half - k, 0, re, -im);
    }
  });
}

// Of N elements, as a convolution with exp(-SIGN pi i n^2 / N) of a length that is the product of R.
template <int SIGN, int64_t N, int... R, class T, class From, class To>
void transform_as_convolution(const From from, const To to, const T factor) {
  constexpr int64_t size = (int64_t(1) * ... * R);
  static const std::vector<T> chirps = turns_of<T>(N, 2 * N, SIGN, [](int64_t i) { return i * i; });
  static const std::vector<T> kernel = [] {
    std::vector<T> found(2 * size), room(6 * size);
    const Parts<T, 1> one{&room[0], &room[size]}, other{&room[2 * size], &room[3 * size]};
    const Parts<T, 1> chirp{&room[4 * size], &room[5 * size]};
    for (int64_t i = 0; i < N; ++i) {
      chirp.set(i, 0, chirps[i], -chirps[N + i]);
      chirp.set((size - i) % size, 0, chirps[i], -chirps[N + i]);
    }
    const Parts<T, 1> result{&found[0], &found[size]};
    stages<-1, 1, 1, R...>(chirp, result, one, other, T(1) / size, Share{0, 1});
    return found;
  }();
  with_room<T, 6 * size>(size, [=](T* room, Share share) {
    const Parts<T, 1> one{room, room + size}, other{room + 2 * size, room + 3 * size};
    const Parts<T, 1> both{room + 4 * size, room + 5 * size};
    const T *const c = chirps.data(), *const s = c + N, *const kr = kernel.data(), *const ki = kr + size;
    for (int64_t i = share.begin(size); i < share.end(size); ++i) {
      const T re = i < N ? from.re(i, 0) : 0, im = i < N ? from.im(i, 0) : 0;
      const T turn_r = i < N ? c[i] : 0, turn_i = i < N ? s[i] : 0;
      both.set(i, 0, re * turn_r - im * turn_i, re * turn_i + im * turn_r);
    }
    share.meet();
    stages<-1, 1, 1, R...>(both, both, one, other, T(1), share);
#pragma omp simd
    for (int64_t i = share.begin(size); i < share.end(size); ++i) {
      const T re = both.re(i, 0), im = both.im(i, 0);
      both.set(i, 0, re * kr[i] - im * ki[i], re * ki[i] + im * kr[i]);
    }
    share.meet();
    stages<1, 1, 1, R...>(both, both, one, other, factor, share);
    for (int64_t i = share.begin(N); i < share.end(N); ++i) {
      const T re = both.re(i, 0), im = both.im(i, 0);
      to.set(i, 0, re * c[i] - im * s[i], re * s[i] + im * c[i]);
    }
  });
}
}  // namespace gp_fourier
}  // namespace
#endif
