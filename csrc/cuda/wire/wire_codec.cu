#include "cuda/wire/wire_codec.h"

#include <algorithm>

#include "cuda/result.cuh"
#include "cuda/wire/lane.h"
#include "wire/format.h"

namespace {

using namespace deft_cuda;
using deft::wire::Format;

constexpr int kWireThreads = 256;
constexpr std::int64_t kMostWireBlocks = 1'048'576;  // each thread takes several spans beyond that

// Of the threads that share a span, which sit side by side in a warp.
template <class Lanes>
__device__ std::uint32_t largest_of_span(std::uint32_t own) {
  if constexpr (!Lanes::kScaled) {
    return own;
  } else if constexpr (Lanes::kLanes == 32) {
    return __reduce_max_sync(0xFFFFFFFFU, own);
  } else {
    constexpr unsigned kOnes = (1U << static_cast<unsigned>(Lanes::kLanes)) - 1U;
    const unsigned first = threadIdx.x % 32U / Lanes::kLanes * Lanes::kLanes;
    return __reduce_max_sync(kOnes << first, own);
  }
}

template <class Lanes>
struct Place {
  std::int64_t span;
  std::int64_t stride;
  int lane;
  std::int64_t spans;

  __device__ explicit Place(std::int64_t elements) {
    constexpr int kSpans = kWireThreads / Lanes::kLanes;  // at a time in a thread block
    span = std::int64_t{blockIdx.x} * kSpans + threadIdx.x / Lanes::kLanes;
    stride = std::int64_t{gridDim.x} * kSpans;
    lane = static_cast<int>(threadIdx.x) % Lanes::kLanes;
    spans = deft::wire::blocks_of(elements, Lanes::kSpan);
  }
};

template <class Lanes>
__global__ void __launch_bounds__(kWireThreads) encode_kernel(const EncodeJob job) {
  Place<Lanes> place(job.elements);
  for (; place.span < place.spans; place.span += place.stride) {
    const std::int64_t at = place.span * Lanes::kSpan + 4 * place.lane;
    Loaded loaded = load_values(job, at, Lanes::kHalf);
    const std::uint32_t largest = largest_of_span<Lanes>(loaded.largest);
    Lanes::finish(job, place.span, place.lane, loaded, largest);
  }
}

template <class Lanes>
__global__ void __launch_bounds__(kWireThreads) decode_kernel(const DecodeJob job) {
  Place<Lanes> place(job.elements);
  for (; place.span < place.spans; place.span += place.stride) {
    Lanes::decode(job, place.span, place.lane);
  }
}

template <class Lanes>
dim3 grid_of(std::int64_t elements) {
  const std::int64_t threads = deft::wire::blocks_of(elements, Lanes::kSpan) * Lanes::kLanes;
  return dim3(static_cast<unsigned>(
      std::min((threads + kWireThreads - 1) / kWireThreads, kMostWireBlocks)));
}

struct Launcher {
  cudaStream_t stream;

  template <class Lanes>
  void run(const EncodeJob& job) const {
    encode_kernel<Lanes><<<grid_of<Lanes>(job.elements), kWireThreads, 0, stream>>>(job);
  }
  template <class Lanes>
  void run(const DecodeJob& job) const {
    decode_kernel<Lanes><<<grid_of<Lanes>(job.elements), kWireThreads, 0, stream>>>(job);
  }
};

template <class Job>
int launch(const DeftWire& wire, const Job& job, void* stream) {
  if (wire.elements == 0) return 0;
  const OnDevice on(wire.device);
  if (on.result() < 0) return on.result();
  const Launcher launcher = {static_cast<cudaStream_t>(stream)};
  switch (static_cast<Format>(wire.format)) {
    case Format::kF32:
      launcher.run<PlainLanes<wire::F32Codes>>(job);
      break;
    case Format::kF16:
      launcher.run<PlainLanes<wire::F16Codes>>(job);
      break;
    case Format::kBf16:
      launcher.run<PlainLanes<wire::Bf16Codes>>(job);
      break;
    case Format::kE4m3:
      launcher.run<BlockLanes<wire::E4m3Codes>>(job);
      break;
    case Format::kInt8:
      launcher.run<BlockLanes<wire::Int8Codes>>(job);
      break;
    case Format::kInt4:
      launcher.run<BlockLanes<wire::Int4Codes>>(job);
      break;
  }
  return result_of(cudaGetLastError());
}

bool multiple_of(std::uintptr_t bytes, std::initializer_list<const void*> addresses) {
  return std::all_of(addresses.begin(), addresses.end(), [bytes](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
  });
}

bool possible(const DeftWire* wire, const void* floats, const void* message) {
  return wire != nullptr && wire->format >= 0 &&
         wire->format < static_cast<int>(deft::wire::kFormats) && wire->elements >= 0 &&
         (wire->elements == 0 || (floats != nullptr && message != nullptr));
}

}  // namespace

int deft_wire_encode(const DeftWire* wire, const float* values, float* rest, void* message,
                     void* stream) {
  if (!possible(wire, values, message) || !multiple_of(4, {values, rest, message})) {
    return kInvalid;
  }
  const bool vectors = multiple_of(16, {values, rest, message});
  const EncodeJob job = {values, rest, static_cast<Byte*>(message), wire->elements, vectors};
  return launch(*wire, job, stream);
}

int deft_wire_decode(const DeftWire* wire, const void* message, float* out, int accumulate,
                     void* stream) {
  if (!possible(wire, out, message) || !multiple_of(4, {out, message})) return kInvalid;
  const bool vectors = multiple_of(16, {out, message});
  const DecodeJob job = {static_cast<const Byte*>(message), out, wire->elements, vectors,
                         accumulate != 0};
  return launch(*wire, job, stream);
}
