// A stream as CUDA's own functions take it.
#pragma once

#include "torch/libtorch.h"

namespace deft {

// A template, as torch 2.4 gives it to those only that link its CUDA library.
template <class Stream>
void* native_stream(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    TORCH_CHECK(
        false,
        "gradients on a GPU need a newer torch than the one that is installed: use 2.11 or newer.");
  }
}

}  // namespace deft
