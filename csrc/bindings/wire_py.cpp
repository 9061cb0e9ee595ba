// The codec of the wire formats, over tensors on the host.
#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "core/errors.h"
#include "wire/codec.h"

namespace py = pybind11;

namespace deft {

namespace {

void check(const at::Tensor& tensor, const char* what, at::ScalarType dtype,
           std::int64_t elements) {
  if (tensor.is_cpu() && tensor.is_contiguous() && tensor.scalar_type() == dtype &&
      tensor.numel() == elements) {
    return;
  }
  throw WireError(std::string(what) + " has " + std::to_string(tensor.numel()) + " elements of " +
                  c10::toString(tensor.scalar_type()) + " on " + tensor.device().str() +
                  (tensor.is_contiguous() ? "" : ", not contiguous") + "; expected " +
                  std::to_string(elements) + " contiguous ones of " + c10::toString(dtype) +
                  " on the CPU");
}

at::Tensor encode(const std::string& name, const at::Tensor& values,
                  const std::optional<at::Tensor>& rest, const std::string& kind) {
  const wire::Format format = wire::format_of(name);
  const wire::Codec codec(wire::kind_of(kind));
  check(values, "values", at::kFloat, values.numel());
  if (rest) check(*rest, "rest", at::kFloat, values.numel());
  const at::Tensor out =
      at::empty({wire::encoded_bytes(format, values.numel())}, at::TensorOptions(at::kByte));
  codec.encode(format, values.const_data_ptr<float>(),
               rest ? rest->mutable_data_ptr<float>() : nullptr, values.numel(),
               static_cast<std::byte*>(out.mutable_data_ptr()));
  return out;
}

void check_message(wire::Format format, const at::Tensor& data, std::int64_t elements) {
  check(data, "data", at::kByte, wire::encoded_bytes(format, elements));
}

at::Tensor decode(const std::string& name, const at::Tensor& data, std::int64_t elements,
                  const std::string& kind) {
  const wire::Format format = wire::format_of(name);
  const wire::Codec codec(wire::kind_of(kind));
  check_message(format, data, elements);
  const at::Tensor out = at::empty({elements}, at::TensorOptions(at::kFloat));
  codec.decode(format, static_cast<const std::byte*>(data.const_data_ptr()), elements,
               out.mutable_data_ptr<float>());
  return out;
}

void decode_add(const std::string& name, const at::Tensor& data, const at::Tensor& out,
                const std::string& kind) {
  const wire::Format format = wire::format_of(name);
  const wire::Codec codec(wire::kind_of(kind));
  check(out, "out", at::kFloat, out.numel());
  check_message(format, data, out.numel());
  codec.decode_add(format, static_cast<const std::byte*>(data.const_data_ptr()), out.numel(),
                   out.mutable_data_ptr<float>());
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const wire::Kind kind : wire::kinds_here()) names.emplace_back(wire::name_of(kind));
  return names;
}

}  // namespace

void bind_wire(py::module_& module) {
  using Release = py::call_guard<py::gil_scoped_release>;
  py::register_exception<WireError>(module, "WireError", PyExc_ValueError);
  module.def("wire_kinds", &kinds);
  module.def(
      "wire_encoded_bytes",
      [](const std::string& format, std::int64_t elements) {
        return wire::encoded_bytes(wire::format_of(format), elements);
      },
      py::arg("format"), py::arg("elements"));
  module.def("wire_encode", &encode, py::arg("format"), py::arg("values"),
             py::arg("rest") = py::none(), py::arg("kind") = "auto", Release());
  module.def("wire_decode", &decode, py::arg("format"), py::arg("data"), py::arg("elements"),
             py::arg("kind") = "auto", Release());
  module.def("wire_decode_add", &decode_add, py::arg("format"), py::arg("data"), py::arg("out"),
             py::arg("kind") = "auto", Release());
}

}  // namespace deft
