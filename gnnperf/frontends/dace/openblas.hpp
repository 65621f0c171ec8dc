// What DaCe calls of BLAS, by gp_gemm and its like: kernels of OpenBLAS, threads of OpenMP.
namespace {
inline void* gp_routine(const char* name) {
  static void* const library = gp_open_openblas();
  if (void* found = dlsym(library, name)) return found;
  std::fprintf(stderr, "gnnperf: OpenBLAS has no %s\n", name);
  std::abort();
}

constexpr int GP_COLUMNS = 102;  // of CBLAS

template <class T>
void gp_cblas_gemm(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, typename gp_type<T>::number alpha,
                   const T* a, int64_t lda, const T* b, int64_t ldb, typename gp_type<T>::number beta, T* c,
                   int64_t ldc) {
  const bool at = ta != GP_AS_IS, bt = tb != GP_AS_IS;
  const T by = gp_value<T>(alpha), old = gp_value<T>(beta);
  if (order == GP_COLUMNS)  // the transposed product, by rows
    gp_gemm<T>(true, bt, at, n, m, k, by, b, ldb, a, lda, old, c, ldc);
  else
    gp_gemm<T>(true, at, bt, m, n, k, by, a, lda, b, ldb, old, c, ldc);
}

template <class T>
void gp_cblas_gemv(int order, int trans, int64_t m, int64_t n, typename gp_type<T>::number alpha, const T* a,
                   int64_t lda, const T* x, int64_t incx, typename gp_type<T>::number beta, T* y, int64_t incy) {
  const T by = gp_value<T>(alpha), old = gp_value<T>(beta);
  const bool transposed = (trans != GP_AS_IS) != (order == GP_COLUMNS);  // as it lies by rows
  const int64_t results = trans == GP_AS_IS ? m : n, terms = trans == GP_AS_IS ? n : m;
  if (old != T(0) && old != T(1))
    for (int64_t i = 0; i < results; ++i) y[i * incy] *= old;
  gp_gemv<T>(true, transposed, results, terms, by, a, lda, x, incx, old == T(0), y, incy);
}

template <class T>
T gp_cblas_dot(int64_t k, const T* x, int64_t incx, const T* y, int64_t incy) {
  return gp_dot<T>(true, k, x, incx, y, incy);
}

// What LAPACKE has of systems of equations, by rows. It copies matrices to lie by columns, and back, on one thread.

// The first n of these rows in the places that the factorisation gave them.
template <class T>
void gp_swap_rows(int64_t n, const int* pivots, int64_t columns, T* a, int64_t lda) {
  for (int64_t k = 0; k < n; ++k)
    if (pivots[k] - 1 != k) std::swap_ranges(a + k * lda, a + k * lda + columns, a + (pivots[k] - 1) * lda);
}

// A[m, n] = P L U in place, m >= n. The first column whose pivot is zero, counted from one; 0 where none is.
template <class T>
int gp_lapacke_getrf(int m, int n, void* matrix, int lda_, int* pivots) {
  T* const a = (T*)matrix;
  const int64_t lda = lda_;
  if (n <= 64) {
    static const auto getrf = gp_blas<T, void (*)(const int*, const int*, T*, const int*, int*, int*)>("getrf_", true);
    int failed = 0;
    std::vector<T> columns(int64_t(m) * n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) columns[j * m + i] = a[i * lda + j];
    getrf(&m, &n, columns.data(), &m, pivots, &failed);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) a[i * lda + j] = columns[j * m + i];
    return failed;
  }
  const int half = (n / 2 + 7) / 8 * 8, rest = n - half;
  T *const right = a + half, *const below = a + half * lda, *const last = below + half;
  const int failed = gp_lapacke_getrf<T>(m, half, a, lda, pivots);
  gp_swap_rows(half, pivots, rest, right, lda);
  gp_trsm<T>(true, false, false, false, true, half, rest, a, lda, right, lda);
  gp_gemm<T>(true, false, false, m - half, rest, half, T(-1), below, lda, right, lda, T(1), last, lda);
  const int later = gp_lapacke_getrf<T>(m - half, rest, last, lda, pivots + half);
  gp_swap_rows(rest, pivots + half, half, below, lda);
  for (int k = half; k < n; ++k) pivots[k] += half;
  return failed ? failed : later ? half + later : 0;
}

// A[n, n] X[n, m] = B in place of B, with what the factorisation made of A.
template <class T>
int gp_lapacke_getrs(int n, int m, const void* factors, int lda, const int* pivots, void* rhs, int ldb) {
  static const auto trsv = gp_blas<T, void (*)(int, int, int, int, int, const T*, int, T*, int)>("trsv");
  const T* const a = (const T*)factors;
  T* const x = (T*)rhs;
  gp_swap_rows(n, pivots, m, x, ldb);
  if (m == 1) {
    trsv(GP_ROWS, GP_LOWER, GP_AS_IS, GP_UNIT, n, a, lda, x, ldb);
    trsv(GP_ROWS, GP_UPPER, GP_AS_IS, GP_NON_UNIT, n, a, lda, x, ldb);
  } else {
    gp_trsm<T>(true, false, false, false, true, n, m, a, lda, x, ldb);
    gp_trsm<T>(true, false, true, false, false, n, m, a, lda, x, ldb);
  }
  return 0;
}

// The inverse in place of these factors: the solution for all columns of the identity.
template <class T>
int gp_lapacke_getri(int n, void* factors, int lda, const int* pivots) {
  T* const a = (T*)factors;
  std::vector<T> copy(int64_t(n) * n);
  gp_copy_part<T>(true, GP_ALL, n, a, lda, copy.data(), n);
  for (int64_t i = 0; i < n; ++i) std::fill_n(a + i * lda, n, T(0));
  for (int64_t i = 0; i < n; ++i) a[i * lda + i] = T(1);
  return gp_lapacke_getrs<T>(n, n, copy.data(), n, pivots, a, lda);
}
}  // namespace
