// The kernels with vectors of 256 and of 512 bits. A function's attribute chooses them: the whole
// extension is compiled for every processor.
#include "wire/kernel_table.h"

namespace deft::wire {

#ifdef __x86_64__
namespace {

namespace with_256_bits {
DEFT_WIRE_KERNELS(__attribute__((target("avx2"))))
}  // namespace with_256_bits

namespace with_512_bits {
#ifdef __clang__
DEFT_WIRE_KERNELS(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"),
                                 min_vector_width(512))))
#else
DEFT_WIRE_KERNELS(
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))))
#endif
}  // namespace with_512_bits

}  // namespace

const Kernels& avx2_kernels() { return with_256_bits::kTable; }
const Kernels& avx512_kernels() { return with_512_bits::kTable; }
#else
const Kernels& avx2_kernels() { return portable_kernels(); }
const Kernels& avx512_kernels() { return portable_kernels(); }
#endif

}  // namespace deft::wire
