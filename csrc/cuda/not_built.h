// What every call of the stubs answers; event_stub.cpp has its text.
#pragma once

namespace deft_cuda {

constexpr int kNotBuilt = -1;

}  // namespace deft_cuda
