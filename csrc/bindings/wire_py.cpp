// The codec of the wire formats, over tensors on the host and on a GPU.
#include "bindings/bindings.h"

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "cuda/wire/wire_codec.h"
#include "torch/memory/memory.h"
#include "torch/memory/tensor_segments.h"
#include "wire/codec.h"

namespace py = pybind11;

namespace deft {

namespace {

void check(const at::Tensor& tensor, const char* what, at::ScalarType dtype, std::int64_t elements,
           const at::Device& device) {
  if (tensor.device() == device && tensor.is_contiguous() && tensor.scalar_type() == dtype &&
      tensor.numel() == elements) {
    return;
  }
  throw WireError(std::string(what) + " has " + std::to_string(tensor.numel()) + " elements of " +
                  c10::toString(tensor.scalar_type()) + " on " + tensor.device().str() +
                  (tensor.is_contiguous() ? "" : ", not contiguous") + "; expected " +
                  std::to_string(elements) + " contiguous ones of " + c10::toString(dtype) +
                  " on " + device.str());
}

// A device has one codec, that of csrc/cuda.
DeftWire on_device(wire::Format format, std::int64_t elements, const at::Device& device,
                   const std::string& kind) {
  if (!device.is_cuda() || kind != "auto") {
    throw WireError("no codec '" + kind + "' on " + device.str() +
                    ", expected a tensor on the CPU, or one on a GPU with kind 'auto'");
  }
  return {static_cast<int>(format), elements, device_index(device)};
}

using Optional = std::optional<at::Tensor>;

at::Tensor encode(const std::string& name, const at::Tensor& values, const Optional& rest,
                  const std::string& kind, const Optional& into) {
  const wire::Format format = wire::format_of(name);
  const std::int64_t elements = values.numel();
  const at::Device device = values.device();
  check(values, "values", at::kFloat, elements, device);
  if (rest) check(*rest, "rest", at::kFloat, elements, device);
  const std::int64_t bytes = wire::encoded_bytes(format, elements);
  const at::Tensor out =
      into ? *into : at::empty({bytes}, at::TensorOptions(at::kByte).device(device));
  check(out, "out", at::kByte, bytes, device);
  auto* left = rest ? rest->mutable_data_ptr<float>() : nullptr;
  if (device.is_cpu()) {
    wire::Codec(wire::kind_of(kind))
        .encode(format, values.const_data_ptr<float>(), left, elements,
                static_cast<std::byte*>(out.mutable_data_ptr()));
  } else {
    const DeftWire wire = on_device(format, elements, device, kind);
    check_launch(deft_wire_encode(&wire, values.const_data_ptr<float>(), left,
                                  out.mutable_data_ptr(), current_stream(device)),
                 "encode a message");
  }
  return out;
}

struct Message {
  std::string format;
  at::Tensor data;
};

void decode_into(const Message& message, const at::Tensor& out, bool add, const std::string& kind) {
  const wire::Format format = wire::format_of(message.format);
  const std::int64_t elements = out.numel();
  const at::Device device = out.device();
  check(out, "out", at::kFloat, elements, device);
  check(message.data, "data", at::kByte, wire::encoded_bytes(format, elements), device);
  auto* values = out.mutable_data_ptr<float>();
  if (device.is_cpu()) {
    const wire::Codec codec(wire::kind_of(kind));
    const auto* in = static_cast<const std::byte*>(message.data.const_data_ptr());
    if (add) {
      codec.decode_add(format, in, elements, values);
    } else {
      codec.decode(format, in, elements, values);
    }
    return;
  }
  const DeftWire wire = on_device(format, elements, device, kind);
  check_launch(deft_wire_decode(&wire, message.data.const_data_ptr(), values, add ? 1 : 0,
                                current_stream(device)),
               "decode a message");
}

at::Tensor decode(const std::string& name, const at::Tensor& data, std::int64_t elements,
                  const std::string& kind, const Optional& into) {
  (void)wire::encoded_bytes(wire::format_of(name), elements);  // refuses what cannot be
  const at::Tensor out =
      into ? *into : at::empty({elements}, at::TensorOptions(at::kFloat).device(data.device()));
  check(out, "out", at::kFloat, elements, data.device());
  decode_into({name, data}, out, false, kind);
  return out;
}

void decode_add(const std::string& name, const at::Tensor& data, const at::Tensor& out,
                const std::string& kind) {
  decode_into({name, data}, out, true, kind);
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
             py::arg("rest") = py::none(), py::arg("kind") = "auto", py::arg("out") = py::none(),
             Release());
  module.def("wire_decode", &decode, py::arg("format"), py::arg("data"), py::arg("elements"),
             py::arg("kind") = "auto", py::arg("out") = py::none(), Release());
  module.def("wire_decode_add", &decode_add, py::arg("format"), py::arg("data"), py::arg("out"),
             py::arg("kind") = "auto", Release());
}

}  // namespace deft
