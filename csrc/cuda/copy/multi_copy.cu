#include "cuda/copy/multi_copy.h"

#include "cuda/copy/launch.cuh"
#include "cuda/copy/multi_copy_work.h"
#include "cuda/dtype.h"

namespace {

using namespace deft_cuda;

template <class From, class To, std::size_t Bytes>
__global__ void __launch_bounds__(kThreads)
    copy_kernel(const __grid_constant__ Table<2, Bytes> table, const Range range,
                const CopyJob job) {
  const std::int64_t past = range.first_chunk + range.chunks;
  for (std::int64_t chunk = range.first_chunk + blockIdx.x; chunk < past; chunk += gridDim.x) {
    copy_chunk<From, To>(table.rows, range.rows, chunk, static_cast<int>(threadIdx.x), job);
  }
}

template <class From, class To>
Kernels kernels() {
  return {reinterpret_cast<const void*>(&copy_kernel<From, To, kSmallBytes>),
          reinterpret_cast<const void*>(&copy_kernel<From, To, kMostBytes>)};
}

template <class From>
Kernels kernels_from(int to) {
  switch (to) {
    case kDeftFloat32:
      return kernels<From, float>();
    case kDeftFloat16:
      return kernels<From, Half>();
    case kDeftBFloat16:
      return kernels<From, BFloat16>();
    default:
      return kernels<From, double>();
  }
}

Kernels kernels_of(int from, int to) {
  switch (from) {
    case kDeftFloat32:
      return kernels_from<float>(to);
    case kDeftFloat16:
      return kernels_from<Half>(to);
    case kDeftBFloat16:
      return kernels_from<BFloat16>(to);
    case kDeftFloat64:
      return kernels_from<double>(to);
    default:
      return kernels<Byte, Byte>();
  }
}

bool possible(const DeftSegments* segments, const DeftCopy* copy) {
  if (segments == nullptr || copy == nullptr || segments->arrays() != 2) return false;
  const int items[2] = {deft_item_bytes(copy->from_dtype), deft_item_bytes(copy->to_dtype)};
  if (items[0] == 0 || items[1] == 0 || !segments->addressable(items, 2)) return false;
  const bool from_bytes = copy->from_dtype == kDeftBytes;
  const bool to_bytes = copy->to_dtype == kDeftBytes;
  const bool plain = copy->scale == 1.0 && copy->accumulate == 0;
  return from_bytes == to_bytes && (!from_bytes || plain);
}

}  // namespace

int deft_multi_copy(const DeftSegments* segments, const DeftCopy* copy, void* stream) {
  if (!possible(segments, copy)) return kInvalid;
  if (segments->chunks() == 0) return 0;
  const OnDevice on(copy->device);
  if (on.result() < 0) return on.result();
  const CopyJob job = {copy->scale, copy->accumulate != 0};
  return launch_all(*segments, kernels_of(copy->from_dtype, copy->to_dtype), stream, job);
}
