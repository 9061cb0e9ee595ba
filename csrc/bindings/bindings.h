// One function per binding file; module.cpp calls them all. Every file of this room includes this
// first: setup.py precompiles it.
#pragma once

#include "torch/libtorch.h"

// Tensors as arguments. torch/extension.h would bring all of torch's C++ interface into each file.
#include <torch/csrc/utils/pybind.h>

namespace deft {

// Of classes whose destructors wait for threads: these may need the GIL to let go of what they
// hold, and Python destroys with the GIL in hand. Torch destroys its process groups this way.
using DestroyedWithoutGil = pybind11::release_gil_before_calling_cpp_dtor;

void bind_abi_fact(const pybind11::module_& module);
void bind_plan(const pybind11::module_& module);
void bind_executor(const pybind11::module_& module);
void bind_link(const pybind11::module_& module);
void bind_staged(const pybind11::module_& module);
void bind_encoded(pybind11::module_& module);
void bind_c10d(const pybind11::module_& module);
void bind_horovod(pybind11::module_& module);
void bind_gradients(pybind11::module_& module);
void bind_pack(pybind11::module_& module);
void bind_session(pybind11::module_& module);
void bind_wire(pybind11::module_& module);

}  // namespace deft
