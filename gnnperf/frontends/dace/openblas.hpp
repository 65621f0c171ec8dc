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
void gp_cblas_gemm(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                   const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  const bool at = ta != GP_AS_IS, bt = tb != GP_AS_IS;
  if (order == GP_COLUMNS)  // the transposed product, by rows
    gp_gemm<T>(true, bt, at, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
  else
    gp_gemm<T>(true, at, bt, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class T>
void gp_cblas_gemv(int order, int trans, int64_t m, int64_t n, T alpha, const T* a, int64_t lda, const T* x,
                   int64_t incx, T beta, T* y, int64_t incy) {
  const bool transposed = (trans != GP_AS_IS) != (order == GP_COLUMNS);  // as it lies by rows
  const int64_t results = trans == GP_AS_IS ? m : n, terms = trans == GP_AS_IS ? n : m;
  if (beta != T(0) && beta != T(1))
    for (int64_t i = 0; i < results; ++i) y[i * incy] *= beta;
  gp_gemv<T>(true, transposed, results, terms, alpha, a, lda, x, incx, beta == T(0), y, incy);
}

template <class T>
T gp_cblas_dot(int64_t k, const T* x, int64_t incx, const T* y, int64_t incy) {
  return gp_dot<T>(true, k, x, incx, y, incy);
}
}  // namespace
