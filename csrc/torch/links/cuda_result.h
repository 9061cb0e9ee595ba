// What calls behind cuda/event.h and cuda/copy_path.h return.
#pragma once

#include <c10/util/Exception.h>

#include "cuda/event.h"

namespace deft {

// what: completes "CUDA could not ...".
inline void check_cuda(int code, const char* what) {
  TORCH_CHECK(code >= 0, "CUDA could not ", what, ": ", deft_cuda_error(code));
}

}  // namespace deft
