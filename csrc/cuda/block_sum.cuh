// Sums of the threads of a block, added to those of all blocks.
#pragma once

#include "cuda/segment_table.h"

namespace deft_cuda {

// All threads of the block call it together, once in a kernel. Which block adds first is chance, so
// the last bits of a total may differ from run to run.
template <int Sums>
__device__ void add_over_block(const double (&own)[Sums], double* totals) {
  constexpr int kWarp = 32;
  __shared__ double parts[kThreads / kWarp][Sums];
  for (int i = 0; i < Sums; ++i) {
    double sum = own[i];
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      sum += __shfl_down_sync(0xFFFFFFFFU, sum, distance);
    }
    if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp][i] = sum;
  }
  __syncthreads();
  if (threadIdx.x < Sums) {
    double sum = 0.0;
    for (int warp = 0; warp < kThreads / kWarp; ++warp) sum += parts[warp][threadIdx.x];
    atomicAdd(totals + threadIdx.x, sum);
  }
}

}  // namespace deft_cuda
