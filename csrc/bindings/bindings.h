// One function per binding file; module.cpp calls them all. Every file of this room includes this
// first, and setup.py compiles them together.
#pragma once

#include "torch/libtorch.h"

// Tensors as arguments. torch/extension.h would bring all of torch's C++ interface into each file.
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <utility>

namespace deft {

// Of a link for Python: what owns it destroys it without the GIL, as it waits for threads then, and
// these may need the GIL to let go of what they hold. (pybind11 has a tag for it, but not that of
// torch 2.4. T must not be shared from this: Python would take that owner.)
template <class T>
std::shared_ptr<T> destroyed_without_gil(std::shared_ptr<T> owned) {
  T* const raw = owned.get();
  return {raw, [owned = std::move(owned)](T*) mutable {
            // At the end of the process Python may be gone already, and its check says yes then.
            const bool python_is_there = PyGILState_GetThisThreadState() != nullptr;
            if (!python_is_there || PyGILState_Check() == 0) return owned.reset();
            const pybind11::gil_scoped_release without;
            owned.reset();
          }};
}

void bind_abi_fact(const pybind11::module_& module);
void bind_plan(const pybind11::module_& module);
void bind_executor(const pybind11::module_& module);
void bind_link(const pybind11::module_& module);
void bind_staged(const pybind11::module_& module);
void bind_encoded(const pybind11::module_& module);
void bind_c10d(const pybind11::module_& module);
void bind_horovod(pybind11::module_& module);
void bind_gradients(pybind11::module_& module);
void bind_pack(pybind11::module_& module);
void bind_session(pybind11::module_& module);
void bind_wire(pybind11::module_& module);

}  // namespace deft
