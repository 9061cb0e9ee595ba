// EncodedLink: all-reduces in fewer bytes.
#include "core/link/encoded_link.h"

#include <ATen/ATen.h>

#include <utility>

#include "bindings/bindings.h"

namespace py = pybind11;

namespace deft {

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::shared_ptr<Encoding> make_encoding(const std::string& format, std::int64_t elements,
                                        const Pairs& raw) {
  std::vector<ValueRange> ranges;
  ranges.reserve(raw.size());
  for (const auto& [begin, count] : raw) ranges.push_back({begin, count});
  return std::make_shared<Encoding>(wire::format_of(format), elements, ranges);
}

// Its memory, which lives as long as the tensor.
at::Tensor rest_of(const std::shared_ptr<Encoding>& encoding) {
  const std::span<float> rest = encoding->rest();
  return at::from_blob(
      rest.data(), {static_cast<std::int64_t>(rest.size())}, [encoding](void*) {}, at::kFloat);
}

}  // namespace

void bind_encoded(const py::module_& module) {
  py::class_<Encoding, std::shared_ptr<Encoding>>(module, "Encoding",
                                                  "How one message travels in a wire format.")
      .def(py::init(&make_encoding), py::arg("format"), py::arg("elements"),
           py::arg("raw") = Pairs{})
      .def_property_readonly("elements", &Encoding::elements)
      .def_property_readonly("bytes", &Encoding::bytes)
      .def_property_readonly("rest", &rest_of);
  py::class_<EncodedLink, Link, std::shared_ptr<EncodedLink>>(
      module, "EncodedLink", "A link that carries some all-reduces in a wire format.")
      .def(py::init([](std::shared_ptr<Link> inner, std::int32_t size, double factor,
                       Encodings encodings) {
             return std::make_shared<EncodedLink>(
                 std::move(inner), EncodedLinkOptions{size, static_cast<float>(factor)},
                 std::move(encodings));
           }),
           py::arg("inner"), py::arg("size"), py::arg("factor"), py::arg("encodings"));
}

}  // namespace deft
