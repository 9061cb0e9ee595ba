// From segments to launches: as many as the table needs, one in the usual case.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "cuda/copy/segment_list.h"
#include "cuda/result.cuh"

namespace deft_cuda {

constexpr bool kWithLarge = CUDART_VERSION >= 12010;
constexpr std::size_t kMostBytes = kWithLarge ? kLargeBytes : kSmallBytes;
// Of a grid in x.
constexpr std::int64_t kMostBlocks = 2147483647;

// One kernel with either table. Their first parameters are the table and its range.
struct Kernels {
  const void* small;
  const void* large;
};

template <class... Parameters>
int launch_all(const DeftSegments& segments, const Kernels& kernels, void* stream,
               Parameters... parameters) {
  for (std::int64_t row = 0; row < segments.size();) {
    Launch launch = segments.launch(row, kWithLarge);
    row += launch.range.rows;
    if (launch.range.chunks == 0) continue;
    void* arguments[] = {const_cast<void*>(launch.rows), &launch.range, &parameters...};
    const dim3 grid(static_cast<unsigned>(std::min(launch.range.chunks, kMostBlocks)));
    const int result = result_of(cudaLaunchKernel(launch.large ? kernels.large : kernels.small,
                                                  grid, dim3(kThreads), arguments, 0,
                                                  static_cast<cudaStream_t>(stream)));
    if (result < 0) return result;
  }
  return 0;
}

}  // namespace deft_cuda
