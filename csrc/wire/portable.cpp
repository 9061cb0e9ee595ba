// The kernels with what every processor of the build's architecture has.
#include "wire/kernel_table.h"

namespace deft::wire {

namespace {
DEFT_WIRE_KERNELS()
}  // namespace

const Kernels& portable_kernels() { return kTable; }

}  // namespace deft::wire
