#include "cuda/multi_combine.h"

#include "cuda/launch.cuh"
#include "cuda/multi_combine_work.h"

namespace {

using namespace deft_cuda;

template <class Number, int Arrays, std::size_t Bytes>
__global__ void __launch_bounds__(kThreads)
    combine_kernel(const __grid_constant__ Table<Arrays, Bytes> table, const Range range,
                   const CombineJob job) {
  const std::int64_t past = range.first_chunk + range.chunks;
  for (std::int64_t chunk = range.first_chunk + blockIdx.x; chunk < past; chunk += gridDim.x) {
    combine_chunk<Number>(table.rows, range.rows, chunk, static_cast<int>(threadIdx.x), job);
  }
}

template <class Number, int Arrays>
Kernels kernels() {
  return {reinterpret_cast<const void*>(&combine_kernel<Number, Arrays, kSmallBytes>),
          reinterpret_cast<const void*>(&combine_kernel<Number, Arrays, kMostBytes>)};
}

template <class Number>
Kernels kernels_of(int arrays) {
  if (arrays == 2) return kernels<Number, 2>();
  return arrays == 3 ? kernels<Number, 3>() : kernels<Number, 4>();
}

bool possible(const DeftSegments* segments, const DeftCombine* combine) {
  if (segments == nullptr || combine == nullptr) return false;
  const int arrays = segments->arrays();
  const bool linear = combine->formula == kDeftLinear && arrays >= 2;
  if (!linear && !(combine->formula == kDeftCompensated && arrays == 4)) return false;
  int items[4] = {};
  for (int i = 0; i < arrays; ++i) {
    if (combine->dtypes[i] == kDeftBytes) return false;
    items[i] = deft_item_bytes(combine->dtypes[i]);
    if (items[i] == 0) return false;
  }
  return segments->addressable(items, arrays);
}

}  // namespace

int deft_multi_combine(const DeftSegments* segments, const DeftCombine* combine, void* stream) {
  if (!possible(segments, combine)) return kInvalid;
  if (segments->chunks() == 0) return 0;
  const OnDevice on(combine->device);
  if (on.result() < 0) return on.result();
  CombineJob job = {combine->formula, {}, {}};
  bool in_double = false;
  for (int i = 0; i < segments->arrays(); ++i) {
    job.dtypes[i] = combine->dtypes[i];
    in_double = in_double || combine->dtypes[i] == kDeftFloat64;
    if (i > 0) job.coefficients[i - 1] = combine->coefficients[i - 1];
  }
  return launch_all(
      *segments,
      in_double ? kernels_of<double>(segments->arrays()) : kernels_of<float>(segments->arrays()),
      kMostBlocks, stream, job);
}
