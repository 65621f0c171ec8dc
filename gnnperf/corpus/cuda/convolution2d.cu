// A filter slid over an image, with the tuning parameters of the description `convolution2d` as -D macros, and
// its sizes W, H, filter_width and filter_height. FILTER lists the filter's values, for constant memory.
// Behind the image lies as much memory as the last blocks, which reach over its edge, read.
#define TILE_W (block_size_x * tile_size_x + filter_width - 1)
#define TILE_H (block_size_y * tile_size_y + filter_height - 1)
#define PITCH (W + filter_width - 1)
#define PADDING (use_padding ? (32 - block_size_x % 32) % 32 : 0)
#if read_only
#define READ(address) __ldg(address)
#else
#define READ(address) (*(address))
#endif

#if use_cmem
__constant__ float constant_filter[filter_height * filter_width] = {FILTER};
#endif

extern "C" __global__ void __launch_bounds__(block_size_x * block_size_y)
convolution2d(float* __restrict__ out, const float* image, const float* __restrict__ filter) {
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int first_x = blockIdx.x * block_size_x * tile_size_x, first_y = blockIdx.y * block_size_y * tile_size_y;
  const float* corner = image + (long long)first_y * PITCH + first_x;
#if use_shmem
  __shared__ float tile[TILE_H][TILE_W + PADDING];
  for (int y = ty; y < TILE_H; y += block_size_y)
    for (int x = tx; x < TILE_W; x += block_size_x) tile[y][x] = READ(corner + (long long)y * PITCH + x);
  __syncthreads();
#endif
  float sum[tile_size_y][tile_size_x];
#pragma unroll
  for (int y = 0; y < tile_size_y; ++y)
#pragma unroll
    for (int x = 0; x < tile_size_x; ++x) sum[y][x] = 0.0f;
#pragma unroll
  for (int i = 0; i < filter_height; ++i)
#pragma unroll
    for (int j = 0; j < filter_width; ++j)
#pragma unroll
      for (int y = 0; y < tile_size_y; ++y)
#pragma unroll
        for (int x = 0; x < tile_size_x; ++x) {
          const int row = ty + y * block_size_y + i, column = tx + x * block_size_x + j;
#if use_shmem
          const float pixel = tile[row][column];
#else
          const float pixel = READ(corner + (long long)row * PITCH + column);
#endif
#if use_cmem
          sum[y][x] += pixel * constant_filter[i * filter_width + j];
#else
          sum[y][x] += pixel * READ(filter + i * filter_width + j);
#endif
        }
#pragma unroll
  for (int y = 0; y < tile_size_y; ++y)
#pragma unroll
    for (int x = 0; x < tile_size_x; ++x) {
      const int row = first_y + ty + y * block_size_y, column = first_x + tx + x * block_size_x;
      if (row < H && column < W) out[(long long)row * W + column] = sum[y][x];
    }
}
