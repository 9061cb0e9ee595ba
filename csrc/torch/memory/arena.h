// One flat buffer per (parameter dtype, wire dtype, device), and a view of it per parameter.
//
// A slot is a header of 16 bytes and the gradient. The header travels with the gradient and is
// summed like it: `presence` tells whether any rank had a gradient, `replan` whether any rank
// asks for a new plan. So these facts reach all ranks with no message of their own.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/plan/plan.h"

namespace deft {

constexpr std::int64_t kHeaderBytes = 16;

struct Header {
  double presence = 0.0;
  double replan = 0.0;
};

class Arena {
 public:
  // `parameters` are those whose slots lie in this arena, in the order of `slots`.
  Arena(const ArenaSpec& spec, const at::Device& device, std::vector<SlotSpec> slots,
        const std::vector<at::Tensor>& parameters);

  // The gradient part of a slot, shaped (and strided, where the parameter is dense) like it.
  [[nodiscard]] const at::Tensor& view(std::size_t slot) const { return views_[slot]; }
  // A flat range [begin, end) of elements of the arena.
  [[nodiscard]] at::Tensor range(std::int64_t begin, std::int64_t end) const;
  [[nodiscard]] void* address(std::int64_t element) const;
  // Keeps the memory: a message in flight may outlive the optimizer.
  [[nodiscard]] std::shared_ptr<void> owner() const { return std::make_shared<at::Tensor>(flat_); }

  void write_header(std::size_t slot, const Header& header);
  [[nodiscard]] Header read_header(std::size_t slot) const;
  // All of these in one copy. It does not wait for what a device still computes: the link has said
  // that the messages have arrived, and nothing else writes here.
  [[nodiscard]] std::vector<Header> read_headers(const std::vector<std::size_t>& slots) const;
  // The header of a slot, and one that says this, to be packed there like a gradient.
  [[nodiscard]] const at::Tensor& header(std::size_t slot) const { return headers_[slot]; }
  [[nodiscard]] const at::Tensor& header_saying(bool presence, bool replan) const {
    return sayings_[(presence ? 2U : 0U) + (replan ? 1U : 0U)];
  }
  void zero(std::size_t slot);  // header and gradient

  [[nodiscard]] std::int32_t device() const { return device_index_; }
  [[nodiscard]] bool on_host() const { return flat_.is_cpu(); }
  [[nodiscard]] std::int64_t bytes() const;

 private:
  void say(std::int64_t header_elements);
  [[nodiscard]] const at::Tensor& places_of(const std::vector<std::size_t>& slots) const;

  std::vector<SlotSpec> slots_;
  std::int32_t device_index_;
  std::int64_t item_bytes_;
  at::Tensor flat_;
  std::vector<at::Tensor> views_;
  std::vector<at::Tensor> headers_;
  std::vector<at::Tensor> sayings_;
  // Where the headers of some slots are, on the device. The same sets come again in every period.
  mutable std::map<std::vector<std::size_t>, at::Tensor> places_;
};

}  // namespace deft
