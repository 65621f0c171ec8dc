// BLAS for emitted code: kernels of OpenBLAS, threads of OpenMP.
#ifndef GNNPERF_BLAS
#define GNNPERF_BLAS
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>
#include <dlfcn.h>
#include <omp.h>
namespace {
// The library is opened at the first call: where it lies beside the code that calls it, else where it
// was when that code was written, else wherever the loader finds one. No options of the linker, so
// whatever compiles the code can do so alone.
inline void* gp_open_openblas() {
  const char* const installed = OPENBLAS_PATH;
  const std::string name = std::string(installed).substr(std::string(installed).rfind('/') + 1);
  std::string beside = name;
  Dl_info self;
  if (dladdr((const void*)&gp_open_openblas, &self) && self.dli_fname) {
    const std::string code = self.dli_fname;
    beside = code.substr(0, code.rfind('/') + 1) + name;
  }
  for (const std::string& path : {beside, std::string(installed), name}) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      // Its own threads stay idle: they run on the processors of the thread that opened the library,
      // a single one where OpenMP threads are pinned, and would compete with those of the caller.
      if (auto set = (void (*)(int))dlsym(library, "scipy_openblas_set_num_threads")) set(1);
      return library;
    }
  }
  std::fprintf(stderr, "gnnperf: no OpenBLAS at %s: pip install scipy-openblas32, or put %s beside this "
               "library (%s)\n", installed, name.c_str(), dlerror());
  std::abort();
}

// How BLAS calls a type, and how it takes a number of it: a complex one by its address.
template <class T> struct gp_type;
template <> struct gp_type<float> { static constexpr char letter = 's'; typedef float number; };
template <> struct gp_type<double> { static constexpr char letter = 'd'; typedef double number; };
template <> struct gp_type<std::complex<float>> { static constexpr char letter = 'c'; typedef const void* number; };
template <> struct gp_type<std::complex<double>> { static constexpr char letter = 'z'; typedef const void* number; };
template <class T> inline T gp_number(const T& x) { return x; }
template <class R> inline const void* gp_number(const std::complex<R>& x) { return &x; }
template <class T> inline T gp_value(T number) { return number; }
template <class T> inline T gp_value(const void* number) { return *(const T*)number; }

template <class T, class F> inline F gp_blas(const char* routine, bool lapack = false) {
  static void* const library = gp_open_openblas();
  const std::string name = std::string(lapack ? "scipy_" : "scipy_cblas_") + gp_type<T>::letter + routine;
  if (void* found = dlsym(library, name.c_str())) return (F)found;
  std::fprintf(stderr, "gnnperf: OpenBLAS has no %s\n", name.c_str());
  std::abort();
}

enum {  // of CBLAS
  GP_ROWS = 101, GP_AS_IS = 111, GP_TRANSPOSED = 112, GP_UPPER = 121, GP_LOWER = 122, GP_NON_UNIT = 131,
  GP_UNIT = 132, GP_LEFT = 141, GP_RIGHT = 142,
};

// Threads that a call may use: one inside a parallel region, and none that would get less than `grain`.
inline int64_t gp_blas_threads(bool share, int64_t work, int64_t grain) {
  if (!share || omp_in_parallel()) return 1;
  return std::max<int64_t>(1, std::min<int64_t>(omp_get_max_threads(), work / grain));
}

// The i-th of n nearly equal pieces of [0, size), in multiples of 8.
struct gp_piece {
  int64_t begin, size;
  gp_piece(int64_t size_, int64_t i, int64_t n) {
    const int64_t width = ((size_ + n - 1) / n + 7) / 8 * 8;
    begin = std::min(size_, i * width);
    size = std::min(size_, begin + width) - begin;
  }
};

// C[m, n] = beta C + alpha A[m, k] B[k, n], all by rows; A and B may be stored transposed.
template <class T>
void gp_gemm(bool share, bool at, bool bt, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
             const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  using number = typename gp_type<T>::number;
  static const auto gemm = gp_blas<T, void (*)(int, int, int, int, int, int, number, const T*, int, const T*, int,
                                               number, T*, int)>("gemm");
  if (m <= 0 || n <= 0) return;
  k = std::max<int64_t>(k, 0);
  const int64_t threads = gp_blas_threads(share, m * n * k, 1 << 17);
  // A grid of blocks, as square as the number allows: each block packs its part of A and of B.
  int64_t rows = threads;
  for (int64_t r = 1; r <= threads; ++r)
    if (threads % r == 0 && r * n + threads / r * m < rows * n + threads / rows * m) rows = r;
  const int64_t columns = threads / rows;
  #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t block = 0; block < threads; ++block) {
    const gp_piece i(m, block / columns, rows), j(n, block % columns, columns);
    if (i.size > 0 && j.size > 0)
      gemm(GP_ROWS, at ? GP_TRANSPOSED : GP_AS_IS, bt ? GP_TRANSPOSED : GP_AS_IS, i.size, j.size, k,
           gp_number(alpha), a + i.begin * (at ? 1 : lda), lda, b + j.begin * (bt ? ldb : 1), ldb,
           gp_number(beta), c + i.begin * ldc + j.begin, ldc);
  }
}

// One triangle of C[n, n] = beta C + alpha A[n, k] diag(w) A^T, by rows. A may be stored transposed; w may be
// null: all ones.
template <class T>
void gp_syrk(bool share, bool upper, bool at, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* w,
             int64_t incw, T beta, T* c, int64_t ldc) {
  static const auto gemm = gp_blas<T, void (*)(int, int, int, int, int, int, T, const T*, int, const T*, int, T,
                                               T*, int)>("gemm");
  static const auto syrk = gp_blas<T, void (*)(int, int, int, int, int, T, const T*, int, T, T*, int)>("syrk");
  constexpr int64_t CHUNK = 256;  // terms whose weighted operand stays in caches
  const int64_t threads = gp_blas_threads(share, n * n * std::max<int64_t>(k, 0) / 2, 1 << 17);
  const int64_t strips = threads > 1 ? std::max<int64_t>(1, std::min<int64_t>(2 * threads, n / 32))
                         : w ? std::max<int64_t>(1, n / 256) : 1;
  // Blocks below the diagonal, which are twice the work of those on it, come first.
  #pragma omp parallel num_threads(threads) if (threads > 1)
  {
    std::vector<T> weighted;
    #pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < strips * (strips + 1) / 2; ++task) {
      int64_t row = 1, left = task;
      while (row < strips && left >= row) left -= row++;
      const int64_t of = row < strips ? row : left, with = left;
      const gp_piece i(n, upper ? with : of, strips), j(n, upper ? of : with, strips);
      if (i.size <= 0 || j.size <= 0) continue;
      const int64_t step = at ? 1 : lda, term = at ? lda : 1;
      T* const block = c + i.begin * ldc + j.begin;
      if (!w && of == with) {
        syrk(GP_ROWS, upper ? GP_UPPER : GP_LOWER, at ? GP_TRANSPOSED : GP_AS_IS, i.size, k, alpha,
             a + i.begin * step, lda, beta, block, ldc);
        continue;
      }
      const int64_t chunk = w ? CHUNK : std::max<int64_t>(k, 1);
      for (int64_t first = 0; first == 0 || first < k; first += chunk) {
        const int64_t terms = std::max<int64_t>(0, std::min(chunk, k - first));
        const T* other = a + j.begin * step + first * term;
        int64_t ldo = lda;
        if (w) {  // as it lies: terms by rows, or by columns
          ldo = at ? j.size : terms;
          weighted.resize(j.size * terms);
          for (int64_t x = 0; x < (at ? terms : j.size); ++x)
            for (int64_t y = 0; y < ldo; ++y)
              weighted[x * ldo + y] = other[x * lda + y] * w[(first + (at ? x : y)) * incw];
          other = weighted.data();
        }
        gemm(GP_ROWS, at ? GP_TRANSPOSED : GP_AS_IS, at ? GP_AS_IS : GP_TRANSPOSED, i.size, j.size, terms, alpha,
             a + i.begin * step + first * term, lda, other, std::max<int64_t>(ldo, 1), first ? T(1) : beta, block,
             ldc);
      }
    }
  }
}

// C[n, n] = alpha A[n, k] diag(w) A^T: half of it, and then the other half.
template <class T>
void gp_gram(bool share, bool at, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* w,
             int64_t incw, T* c, int64_t ldc) {
  constexpr int64_t TILE = 32;
  gp_syrk(share, false, at, n, k, alpha, a, lda, w, incw, T(0), c, ldc);
  #pragma omp parallel for schedule(dynamic, 1) if (gp_blas_threads(share, n * n, 1 << 16) > 1)
  for (int64_t i = 0; i < n; i += TILE)
    for (int64_t j = 0; j <= i; j += TILE)
      for (int64_t x = i; x < std::min(n, i + TILE); ++x)
        for (int64_t y = j; y < std::min(x, j + TILE); ++y) c[y * ldc + x] = c[x * ldc + y];
}

// y[m] += alpha A[m, k] x[k], after y = 0 where `clear`. A is by rows, or stored transposed.
template <class T>
void gp_gemv(bool share, bool at, int64_t m, int64_t k, T alpha, const T* a, int64_t lda, const T* x,
             int64_t incx, bool clear, T* y, int64_t incy) {
  using number = typename gp_type<T>::number;
  static const auto gemv =
      gp_blas<T, void (*)(int, int, int, int, number, const T*, int, const T*, int, number, T*, int)>("gemv");
  const T one(1);
  if (m <= 0) return;
  const int64_t threads = gp_blas_threads(share, m * std::max<int64_t>(k, 0), 1 << 14);
  #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t part = 0; part < threads; ++part) {
    const gp_piece i(m, part, threads);
    T* const mine = y + i.begin * incy;
    if (clear)
      for (int64_t at_ = 0; at_ < i.size; ++at_) mine[at_ * incy] = T(0);
    if (i.size <= 0 || k <= 0) continue;
    if (at)
      gemv(GP_ROWS, GP_TRANSPOSED, k, i.size, gp_number(alpha), a + i.begin, lda, x, incx, gp_number(one), mine, incy);
    else
      gemv(GP_ROWS, GP_AS_IS, i.size, k, gp_number(alpha), a + i.begin * lda, lda, x, incx, gp_number(one), mine, incy);
  }
}

// A[m, n] += alpha x[m] y[n], by rows.
template <class T>
void gp_ger(bool share, int64_t m, int64_t n, T alpha, const T* x, int64_t incx, const T* y, int64_t incy, T* a,
            int64_t lda) {
  static const auto ger = gp_blas<T, void (*)(int, int, int, T, const T*, int, const T*, int, T*, int)>("ger");
  if (m <= 0 || n <= 0) return;
  const int64_t threads = gp_blas_threads(share, m * n, 1 << 14);
  #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t part = 0; part < threads; ++part) {
    const gp_piece i(m, part, threads);
    if (i.size > 0) ger(GP_ROWS, i.size, n, alpha, x + i.begin * incx, incx, y, incy, a + i.begin * lda, lda);
  }
}

// The sum of x[k] y[k].
template <class T>
T gp_dot(bool share, int64_t k, const T* x, int64_t incx, const T* y, int64_t incy) {
  static const auto dot = gp_blas<T, T (*)(int, const T*, int, const T*, int)>("dot");
  if (k <= 0) return T(0);
  const int64_t threads = gp_blas_threads(share, k, 1 << 15);
  T total = 0;
  #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1) reduction(+ : total)
  for (int64_t part = 0; part < threads; ++part) {
    const gp_piece i(k, part, threads);
    if (i.size > 0) total += dot(i.size, x + i.begin * incx, incx, y + i.begin * incy, incy);
  }
  return total;
}

// A[n, n] X[n, m] = B in place of B. By rows; where `right`, X lies transposed: X^T A^T = B^T.
template <class T>
void gp_trsm(bool share, bool right, bool upper, bool transposed, bool unit, int64_t n, int64_t m, const T* a,
             int64_t lda, T* x, int64_t ldx) {
  using number = typename gp_type<T>::number;
  static const auto trsm = gp_blas<T, void (*)(int, int, int, int, int, int, int, number, const T*, int, T*, int)>(
      "trsm");
  const T one(1);
  if (m <= 0 || n <= 0) return;
  const int64_t threads = gp_blas_threads(share, n * n * m, 1 << 17);
  #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t part = 0; part < threads; ++part) {
    const gp_piece j(m, part, threads);
    if (j.size > 0)
      trsm(GP_ROWS, right ? GP_RIGHT : GP_LEFT, upper ? GP_UPPER : GP_LOWER,
           transposed ? GP_TRANSPOSED : GP_AS_IS, unit ? GP_UNIT : GP_NON_UNIT, right ? j.size : n,
           right ? n : j.size, gp_number(one), a, lda, x + j.begin * (right ? ldx : 1), ldx);
  }
}
enum { GP_ALL = 0 };  // beside GP_UPPER and GP_LOWER

// Copies a triangle with its diagonal, or all, of a square matrix.
template <class T>
void gp_copy_part(bool share, int part, int64_t n, const T* from, int64_t ldf, T* to, int64_t ldt) {
  #pragma omp parallel for schedule(static) if (gp_blas_threads(share, n * n, 1 << 16) > 1)
  for (int64_t i = 0; i < n; ++i) {
    const int64_t begin = part == GP_UPPER ? i : 0, end = part == GP_LOWER ? i + 1 : n;
    std::copy(from + i * ldf + begin, from + i * ldf + end, to + i * ldt + begin);
  }
}

// A[n, n] = L L^T: L in place of its lower triangle, by rows, or L^T in place of the upper one. Halves are
// factorised one after the other; most of the work is what the first takes from the second.
template <class T>
void gp_potrf(bool share, bool upper, int64_t n, T* a, int64_t lda) {
  static const auto potrf = gp_blas<T, void (*)(const char*, const int*, T*, const int*, int*, size_t)>(
      "potrf_", true);
  if (n <= 0) return;
  if (n <= 96) {
    const int size = n, step = lda;
    int failed = 0;
    potrf(upper ? "L" : "U", &size, a, &step, &failed, 1);  // by columns: the other triangle
    // Not positive definite: what loops would compute from here on is no number either.
    if (failed > 0) a[(failed - 1) * (lda + 1)] = std::numeric_limits<T>::quiet_NaN();
    for (int64_t i = std::max(failed, 1) - 1; failed > 0 && i < n; ++i)
      for (int64_t j = failed - 1; j <= i; ++j)
        a[upper ? j * lda + i : i * lda + j] = std::numeric_limits<T>::quiet_NaN();
    return;
  }
  const int64_t half = (n / 2 + 7) / 8 * 8, rest = n - half;
  T* const beside = a + (upper ? half : half * lda);
  T* const last = a + half * (lda + 1);
  gp_potrf(share, upper, half, a, lda);
  gp_trsm(share, !upper, upper, true, false, half, rest, a, lda, beside, lda);
  gp_syrk<T>(share, upper, upper, rest, half, T(-1), beside, lda, nullptr, 0, T(1), last, lda);
  gp_potrf(share, upper, rest, last, lda);
}

// A[n, n] = L U without pivots, by rows, in place. The diagonal of L is one, or that of U.
template <class T>
void gp_getrf(bool share, bool unit_upper, int64_t n, T* a, int64_t lda) {
  if (n <= 32) {
    for (int64_t k = 0; k < n; ++k) {
      const T* const pivots = a + k * lda;
      if (unit_upper)
        for (int64_t j = k + 1; j < n; ++j) a[k * lda + j] /= pivots[k];
      for (int64_t i = k + 1; i < n; ++i) {
        T* const row = a + i * lda;
        if (!unit_upper) row[k] /= pivots[k];
        const T factor = row[k];
        for (int64_t j = k + 1; j < n; ++j) row[j] -= factor * pivots[j];
      }
    }
    return;
  }
  const int64_t half = (n / 2 + 7) / 8 * 8, rest = n - half;
  T *const right = a + half, *const below = a + half * lda, *const last = below + half;
  gp_getrf(share, unit_upper, half, a, lda);
  gp_trsm(share, false, false, false, !unit_upper, half, rest, a, lda, right, lda);
  gp_trsm(share, true, true, false, unit_upper, half, rest, a, lda, below, lda);
  gp_gemm(share, false, false, rest, rest, half, T(-1), below, lda, right, lda, T(1), last, lda);
  gp_getrf(share, unit_upper, rest, last, lda);
}
}  // namespace
#endif
