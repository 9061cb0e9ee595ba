#include "bindings/bindings.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "The C++ half of deft_horovod: executor, links, gradient hooks.";
  deft::bind_abi_fact(module);
  deft::bind_plan(module);
  deft::bind_executor(module);
  deft::bind_link(module);
  deft::bind_horovod(module);
  deft::bind_staged(module);
  deft::bind_encoded(module);
  deft::bind_c10d(module);
  deft::bind_gradients(module);
  deft::bind_pack(module);
  deft::bind_session(module);
  deft::bind_wire(module);
}
