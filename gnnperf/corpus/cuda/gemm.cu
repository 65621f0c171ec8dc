// C = A B with the tuning parameters and the sizes of the description `gemm`, as -D macros. A is K x M, B is
// K x N, C is N x M, each with its last dimension together in memory; the tiles divide M, N and K.
#define MWI (MWG / MDIMC)
#define NWI (NWG / NDIMC)
#define THREADS (MDIMC * NDIMC)
#define ALIGNED(width) __align__((width) < 4 ? 4 * (width) : 16)

struct ALIGNED(VWM) VectorM { float v[VWM]; };
struct ALIGNED(VWN) VectorN { float v[VWN]; };

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C) {
  const int thread_m = threadIdx.x, thread_n = threadIdx.y, thread = thread_m + thread_n * MDIMC;
  const int first_m = blockIdx.x * MWG, first_n = blockIdx.y * NWG;
#if SA
  __shared__ VectorM tile_a[KWG * (MWG / VWM)];
#endif
#if SB
  __shared__ VectorN tile_b[KWG * (NWG / VWN)];
#endif
  float sum[NWI][MWI];
#pragma unroll
  for (int n = 0; n < NWI; ++n)
#pragma unroll
    for (int m = 0; m < MWI; ++m) sum[n][m] = 0.0f;

  for (int round = 0; round < K; round += KWG) {
#if SA
    for (int k = thread / MDIMA; k < KWG; k += THREADS / MDIMA)
      for (int m = thread % MDIMA; m < MWG / VWM; m += MDIMA)
        tile_a[k * (MWG / VWM) + m] =
            reinterpret_cast<const VectorM*>(A + (long long)(round + k) * M + first_m)[m];
#endif
#if SB
    for (int k = thread / NDIMB; k < KWG; k += THREADS / NDIMB)
      for (int n = thread % NDIMB; n < NWG / VWN; n += NDIMB)
        tile_b[k * (NWG / VWN) + n] =
            reinterpret_cast<const VectorN*>(B + (long long)(round + k) * N + first_n)[n];
#endif
#if SA || SB
    __syncthreads();
#endif
    for (int step = 0; step < KWG; step += KWI) {
#pragma unroll
      for (int inner = 0; inner < KWI; ++inner) {
        const int k = step + inner;
        VectorM a[MWI / VWM];
        VectorN b[NWI / VWN];
#pragma unroll
        for (int m = 0; m < MWI / VWM; ++m) {
          const int at = STRM ? thread_m + m * MDIMC : thread_m * (MWI / VWM) + m;
#if SA
          a[m] = tile_a[k * (MWG / VWM) + at];
#else
          a[m] = reinterpret_cast<const VectorM*>(A + (long long)(round + k) * M + first_m)[at];
#endif
        }
#pragma unroll
        for (int n = 0; n < NWI / VWN; ++n) {
          const int at = STRN ? thread_n + n * NDIMC : thread_n * (NWI / VWN) + n;
#if SB
          b[n] = tile_b[k * (NWG / VWN) + at];
#else
          b[n] = reinterpret_cast<const VectorN*>(B + (long long)(round + k) * N + first_n)[at];
#endif
        }
#pragma unroll
        for (int n = 0; n < NWI; ++n)
#pragma unroll
          for (int m = 0; m < MWI; ++m) sum[n][m] += a[m / VWM].v[m % VWM] * b[n / VWN].v[n % VWN];
      }
    }
#if SA || SB
    __syncthreads();
#endif
  }
#pragma unroll
  for (int n = 0; n < NWI; ++n)
#pragma unroll
    for (int m = 0; m < MWI; ++m) {
      const int row = (STRN ? thread_n + n / VWN * NDIMC : thread_n * (NWI / VWN) + n / VWN) * VWN + n % VWN;
      const int column =
          (STRM ? thread_m + m / VWM * MDIMC : thread_m * (MWI / VWM) + m / VWM) * VWM + m % VWM;
      C[(long long)(first_n + row) * M + first_m + column] = sum[n][m];
    }
}
