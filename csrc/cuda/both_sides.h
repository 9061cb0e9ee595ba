// Marks what runs on the host and on the device. Without nvcc it is plain C++, for the tests.
#pragma once

#ifdef __CUDACC__
#define DEFT_BOTH_SIDES __host__ __device__
#else
#define DEFT_BOTH_SIDES
#endif

// The host's compiler, which nvcc calls too, does not know this pragma.
#ifdef __CUDA_ARCH__
#define DEFT_UNROLL _Pragma("unroll")
#else
#define DEFT_UNROLL
#endif
