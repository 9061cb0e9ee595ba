#include "cuda/multi_sums.h"

#include "cuda/block_sum.cuh"
#include "cuda/launch.cuh"
#include "cuda/multi_sums_work.h"

namespace {

using namespace deft_cuda;

template <int Arrays, std::size_t Bytes>
__global__ void __launch_bounds__(kThreads)
    sums_kernel(const __grid_constant__ Table<Arrays, Bytes> table, const Range range,
                const SumsJob job, double* totals) {
  double sums[kDeftSums] = {};
  const std::int64_t past = range.first_chunk + range.chunks;
  for (std::int64_t chunk = range.first_chunk + blockIdx.x; chunk < past; chunk += gridDim.x) {
    sum_chunk(table.rows, range.rows, chunk, static_cast<int>(threadIdx.x), job, sums);
  }
  add_over_block(sums, totals);
}

template <int Arrays>
Kernels kernels() {
  return {reinterpret_cast<const void*>(&sums_kernel<Arrays, kSmallBytes>),
          reinterpret_cast<const void*>(&sums_kernel<Arrays, kMostBytes>)};
}

bool possible(const DeftSegments* segments, const DeftSumsOf* of) {
  if (segments == nullptr || of == nullptr || of->sums == nullptr) return false;
  const int arrays = segments->arrays();
  if (arrays != 2 && arrays != 3) return false;
  int items[3] = {};
  for (int i = 0; i < arrays; ++i) {
    if (of->dtypes[i] == kDeftBytes) return false;
    items[i] = deft_item_bytes(of->dtypes[i]);
    if (items[i] == 0) return false;
  }
  return segments->addressable(items, arrays);
}

}  // namespace

int deft_multi_sums(const DeftSegments* segments, const DeftSumsOf* of, void* stream) {
  if (!possible(segments, of)) return kInvalid;
  if (segments->chunks() == 0) return 0;
  const OnDevice on(of->device);
  if (on.result() < 0) return on.result();
  std::int64_t blocks = 0;
  const int result = resident_blocks(of->device, &blocks);
  if (result < 0) return result;
  const SumsJob job = {{of->dtypes[0], of->dtypes[1], of->dtypes[2]}};
  return launch_all(*segments, segments->arrays() == 2 ? kernels<2>() : kernels<3>(), blocks,
                    stream, job, of->sums);
}
