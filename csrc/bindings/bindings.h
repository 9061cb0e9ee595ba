// One function per binding file; module.cpp calls them all.
#pragma once

#include <torch/extension.h>

namespace deft {

void bind_plan(const pybind11::module_& module);
void bind_executor(const pybind11::module_& module);
void bind_link(const pybind11::module_& module);
void bind_staged(const pybind11::module_& module);
void bind_c10d(const pybind11::module_& module);
void bind_horovod(pybind11::module_& module);
void bind_gradients(pybind11::module_& module);
void bind_pack(pybind11::module_& module);
void bind_session(pybind11::module_& module);

}  // namespace deft
