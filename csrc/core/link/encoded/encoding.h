// How one message travels in a wire format: which of its values are encoded, who sums which of
// them, and what rounding has left.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/link/encoded/parts.h"
#include "wire/codec.h"

namespace deft {

struct ValueRange {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
};

class Encoding {
 public:
  // `raw`: the values that travel as they are (headers), in ascending order. With one owner every
  // rank sums all values; with several the values are cut into a chunk for each, and rank r sums
  // the r-th. Throws WireError.
  Encoding(wire::Format format, std::int64_t elements, const std::vector<ValueRange>& raw,
           std::int32_t owners = 1, std::int32_t rank = 0);
  // One for values that travel as they are. It takes in what rounding has left of them before, all
  // but those in `raw`, for the first message to deliver.
  [[nodiscard]] static std::shared_ptr<Encoding> whole(std::int64_t elements,
                                                       const std::vector<ValueRange>& raw);

  [[nodiscard]] std::int64_t elements() const { return elements_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }  // of a message
  [[nodiscard]] std::int32_t owners() const { return static_cast<std::int32_t>(chunks_.size()); }
  [[nodiscard]] std::int32_t rank() const { return rank_; }
  [[nodiscard]] std::vector<std::int64_t> chunk_bytes() const;
  // What rounding has left of the values given, one for each that is encoded, and of the sums of
  // the own chunk: it is sent with the next ones.
  [[nodiscard]] std::span<float> rest() { return rest_; }
  [[nodiscard]] std::span<float> sum_rest() { return sum_rest_; }
  // Where the rests of the values begin whose sums this rank owns.
  [[nodiscard]] std::int64_t sum_rest_begin() const {
    return chunks_[static_cast<std::size_t>(rank_)].rest;
  }

  // The next message travels whole: not encoded, and with all that rounding has left. All ranks
  // have to say so between the same two messages.
  void set_whole_next(bool whole) { whole_next_.store(whole, std::memory_order_relaxed); }
  [[nodiscard]] bool whole_next() const { return whole_next_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool always_whole() const { return always_whole_; }
  // Of a message that is about to leave. The one after it is encoded again.
  [[nodiscard]] bool take_whole() {
    return always_whole_ || whole_next_.exchange(false, std::memory_order_relaxed);
  }
  // The values together with their rests, and those of sums, which are `factor` times the total.
  // Nothing is left then. If one of the values is not finite, all of them stay as they are, and all
  // rests too.
  [[nodiscard]] std::vector<float> with_rests(const float* values, float factor);
  // Whether it is always whole and has delivered what was left.
  [[nodiscard]] bool spent() const { return spent_.load(std::memory_order_acquire); }

  void encode(const float* values, std::byte* message);
  // What rounding left of the latest values, relative to their length, by a sample. Below 0: there
  // were none, or they were not finite. Any thread may ask.
  [[nodiscard]] double error() const { return error_.load(std::memory_order_relaxed); }
  // The sum of the messages of all ranks, in the order of ranks, times the factor.
  void sum(std::span<const std::byte* const> messages, float factor, float* out) const;
  // The same of the own chunk alone: `chunks` is that of all ranks, one behind another. It is
  // summed in `values`, at its place there, and then encoded to where `chunks` begins.
  void sum_own(std::byte* chunks, float factor, float* values);

 private:
  struct Chunk {
    Parts parts;
    std::int64_t offset_bytes = 0;  // in the message
    std::int64_t rest = 0;          // where its rests begin
  };
  struct Stretch {
    wire::Format format = wire::Format::kF32;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  void cut(const std::vector<Stretch>& stretches, std::int32_t owners);

  wire::Codec codec_;
  std::int64_t elements_;
  std::int32_t rank_;
  std::int64_t bytes_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<float> rest_;
  std::vector<float> sum_rest_;
  std::atomic<double> error_ = -1.0;
  std::atomic<bool> whole_next_ = false;
  bool always_whole_ = false;
  std::atomic<bool> spent_ = false;
  std::mutex rests_mutex_;  // messages that are whole may leave on several links
};

}  // namespace deft
