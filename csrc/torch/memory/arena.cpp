#include "torch/libtorch.h"

#include "torch/memory/arena.h"

#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "torch/memory/memory.h"

namespace deft {

namespace {

// A tensor on the arena's storage without torch's view tracking: it is handed out as `p.grad`,
// where in-place changes by the user are normal.
at::Tensor on_storage(const at::Tensor& flat, std::int64_t offset, at::IntArrayRef sizes,
                      at::IntArrayRef strides) {
  at::Tensor tensor = at::empty({0}, flat.options());
  tensor.set_(flat.storage(), offset, sizes, strides);
  return tensor;
}

at::Tensor gradient_view(const at::Tensor& flat, std::int64_t offset, const at::Tensor& like) {
  if (like.is_non_overlapping_and_dense()) {
    return on_storage(flat, offset, like.sizes(), like.strides());
  }
  return on_storage(flat, offset, like.sizes(), at::empty(like.sizes(), at::kMeta).strides());
}

}  // namespace

Arena::Arena(const ArenaSpec& spec, const at::Device& device, std::vector<SlotSpec> slots,
             const std::vector<at::Tensor>& parameters)
    : slots_(std::move(slots)),
      device_index_(deft::device_index(device)),
      item_bytes_(bytes_of(spec.wire)),
      flat_(at::zeros({spec.elements}, at::device(device).dtype(to_torch(spec.wire)))) {
  const std::int64_t header = kHeaderBytes / item_bytes_;
  views_.reserve(slots_.size());
  headers_.reserve(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const SlotSpec& slot = slots_[i];
    TORCH_CHECK(slot.end - slot.begin >= header + parameters[i].numel(), "slot ", i, " holds ",
                slot.end - slot.begin - header, " elements, its parameter has ",
                parameters[i].numel());
    views_.push_back(gradient_view(flat_, slot.begin + header, parameters[i]));
    headers_.push_back(on_storage(flat_, slot.begin, {header}, {1}));
  }
  say(header);
}

void Arena::say(std::int64_t header_elements) {
  const at::Tensor all = at::zeros({4, header_elements}, at::kDouble);
  for (std::int64_t row = 0; row < 4; ++row) {
    all[row][0] = row / 2;
    all[row][1] = row % 2;
  }
  sayings_ = all.to(flat_.options()).unbind();
}

at::Tensor Arena::range(std::int64_t begin, std::int64_t end) const {
  return on_storage(flat_, begin, {end - begin}, {1});
}

void* Arena::address(std::int64_t element) const {
  return static_cast<char*>(flat_.data_ptr()) + element * item_bytes_;
}

void Arena::write_header(std::size_t slot, const Header& header) {
  const at::NoGradGuard no_grad;
  at::Tensor& where = headers_[slot];
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(where.scalar_type(), "write_header", [&] {
    if (where.is_cpu()) {
      auto* element = where.data_ptr<scalar_t>();
      element[0] = static_cast<scalar_t>(header.presence);
      element[1] = static_cast<scalar_t>(header.replan);
    } else {
      where.select(0, 0).fill_(header.presence);
      where.select(0, 1).fill_(header.replan);
    }
  });
}

Header Arena::read_header(std::size_t slot) const {
  const at::Tensor where = headers_[slot].is_cpu() ? headers_[slot] : headers_[slot].cpu();
  Header header;
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(where.scalar_type(), "read_header", [&] {
    const auto* element = where.data_ptr<scalar_t>();
    header.presence = static_cast<double>(element[0]);
    header.replan = static_cast<double>(element[1]);
  });
  return header;
}

std::vector<Header> Arena::read_headers(const std::vector<std::size_t>& slots) const {
  std::vector<Header> found;
  found.reserve(slots.size());
  if (on_host()) {
    for (const std::size_t slot : slots) found.push_back(read_header(slot));
    return found;
  }
  const at::NoGradGuard no_grad;
  const c10::Device device = flat_.device();
  const c10::impl::VirtualGuardImpl streams(device.type());
  const c10::StreamGuard guard(streams.getStreamFromGlobalPool(device, /*isHighPriority=*/true));
  const at::Tensor values =
      flat_.index_select(0, places_of(slots)).cpu().to(at::kDouble).reshape({-1, 2});
  const auto rows = values.accessor<double, 2>();
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    found.push_back({rows[row][0], rows[row][1]});
  }
  return found;
}

const at::Tensor& Arena::places_of(const std::vector<std::size_t>& slots) const {
  at::Tensor& places = places_[slots];
  if (!places.defined()) {
    std::vector<std::int64_t> elements;
    for (const std::size_t slot : slots) {
      elements.push_back(slots_[slot].begin);
      elements.push_back(slots_[slot].begin + 1);
    }
    places = at::tensor(elements, at::kLong).to(flat_.device());
  }
  return places;
}

void Arena::zero(std::size_t slot) {
  const at::NoGradGuard no_grad;
  range(slots_[slot].begin, slots_[slot].end).zero_();
}

std::int64_t Arena::bytes() const { return static_cast<std::int64_t>(flat_.nbytes()); }

}  // namespace deft
