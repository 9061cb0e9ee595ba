// All gradients of a bucket <-> their slots. Where tensors are on a GPU and lie alike in memory it
// is one kernel for each pair of types; else `pack`, one by one.
#pragma once

#include <ATen/ATen.h>

#include "torch/memory/pack.h"
#include "torch/memory/tensor_segments.h"

namespace deft {

// slot (=|+=) scale * gradient for each pair, cast to the slot's dtype. Asynchronous on a GPU, in
// the calling thread's current stream.
void pack_all(const Tensors& gradients, const Tensors& slots, double scale, PackMode mode);

// The other way.
void unpack_all(const Tensors& slots, const Tensors& gradients, double scale = 1.0,
                PackMode mode = PackMode::kOverwrite);

}  // namespace deft
