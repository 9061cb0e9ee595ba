// EncodedLink: all-reduces in fewer bytes.
#include "bindings/bindings.h"

#include "core/link/encoded/encoded_link.h"

#include <ATen/ATen.h>

#include <utility>

#include "core/link/encoded/exchange.h"

namespace py = pybind11;

namespace deft {

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::vector<ValueRange> ranges_of(const Pairs& pairs) {
  std::vector<ValueRange> ranges;
  ranges.reserve(pairs.size());
  for (const auto& [begin, count] : pairs) ranges.push_back({begin, count});
  return ranges;
}

std::shared_ptr<Encoding> make_encoding(const std::string& format, std::int64_t elements,
                                        const Pairs& raw, std::int32_t owners, std::int32_t rank) {
  return std::make_shared<Encoding>(wire::format_of(format), elements, ranges_of(raw), owners,
                                    rank);
}

// Its memory, which lives as long as the tensor.
template <std::span<float> (Encoding::*Part)()>
at::Tensor rest_of(const std::shared_ptr<Encoding>& encoding) {
  const std::span<float> rest = ((*encoding).*Part)();
  return at::from_blob(
      rest.data(), {static_cast<std::int64_t>(rest.size())}, [encoding](void*) {}, at::kFloat);
}

}  // namespace

void bind_encoded(const py::module_& module) {
  py::class_<Encoding, std::shared_ptr<Encoding>>(module, "Encoding",
                                                  "How one message travels in a wire format.")
      .def(py::init(&make_encoding), py::arg("format"), py::arg("elements"),
           py::arg("raw") = Pairs{}, py::arg("owners") = 1, py::arg("rank") = 0)
      .def_static(
          "whole",
          [](std::int64_t elements, const Pairs& raw) {
            return Encoding::whole(elements, ranges_of(raw));
          },
          py::arg("elements"), py::arg("raw") = Pairs{})
      .def_property("whole_next", &Encoding::whole_next, &Encoding::set_whole_next)
      .def_property_readonly("always_whole", &Encoding::always_whole)
      .def_property_readonly("elements", &Encoding::elements)
      .def_property_readonly("bytes", &Encoding::bytes)
      .def_property_readonly("owners", &Encoding::owners)
      .def_property_readonly("rest", &rest_of<&Encoding::rest>)
      .def_property_readonly("sum_rest", &rest_of<&Encoding::sum_rest>)
      .def_property_readonly("error", &Encoding::error)
      .def_property_readonly("sum_rest_begin", &Encoding::sum_rest_begin);
  py::class_<EncodedLink, Link, std::shared_ptr<EncodedLink>>(
      module, "EncodedLink", "A link that carries some all-reduces in a wire format.")
      .def(py::init([](std::shared_ptr<Link> inner, std::int32_t size, std::int32_t rank,
                       double factor, Encodings encodings, std::string roll_call,
                       std::shared_ptr<Link> mesh, Encodings exact) {
             return destroyed_without_gil(std::make_shared<EncodedLink>(
                 std::move(inner),
                 EncodedLinkOptions{size, rank, static_cast<float>(factor), std::move(roll_call),
                                    std::move(mesh), std::move(exact)},
                 std::move(encodings)));
           }),
           py::arg("inner"), py::arg("size"), py::arg("rank"), py::arg("factor"),
           py::arg("encodings"), py::arg("roll_call") = "", py::arg("mesh") = nullptr,
           py::arg("exact") = Encodings{});
}

}  // namespace deft
