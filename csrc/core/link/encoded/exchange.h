// How encoded bytes travel between ranks: the messages of an exchange, and where their bytes lie in
// one buffer.
//
// Over a mesh all is exchanged part by part. Without one, two ranks add up their bytes, as integers
// without carry beyond them, and each takes its own off again: an all-reduce moves as much as an
// exchange of both would, and in Gloo it is the one that sends and receives at once.
//
// Horovod fuses what waits side by side, and all of it arrives only with its last byte; but nothing
// of different types. So bytes travel as integers of another type for each fusion group, as far as
// there are any. (An encoded message is a whole number of 32-bit words; an all-to-all is not
// fused.)
//
// With one owner the buffer has the messages of all ranks, in the order of ranks. With several it
// has the own message and, behind it, what others sent of the own chunk; then the encoded sums of
// the own chunk begin there, and those of all chunks take the place of the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/link/buffer_pool.h"
#include "core/link/encoded/encoding.h"
#include "core/link/link.h"

namespace deft {

struct Place {
  std::int32_t size = 1;  // ranks of the link
  std::int32_t rank = 0;
  bool mesh = false;  // parts of buffers go from rank to rank, on a link of their own
};

class Exchange {
 public:
  Exchange(const Encoding& encoding, Place place, BufferPool::Buffer buffer,
           std::int32_t fusion_group);

  [[nodiscard]] static std::int64_t buffer_bytes(const Encoding& encoding, Place place);

  // Where this rank's values are encoded to.
  [[nodiscard]] std::byte* message() const;
  // Where the chunks begin that this rank sums.
  [[nodiscard]] std::byte* chunks() const;
  // Of all ranks, with one owner; of the sums, with several.
  [[nodiscard]] std::vector<const std::byte*> messages() const;

  // What travels for a message: its first stage, and with several owners the second.
  [[nodiscard]] Message first(const Message& message) const;
  [[nodiscard]] Message second(const Message& message) const;
  // Once the only stage has arrived: between two ranks, the sum becomes the other's message.
  void separate() const;

 private:
  [[nodiscard]] bool is_pair() const;
  [[nodiscard]] std::byte* of_other() const;
  [[nodiscard]] Message bytes_for(const Message& message, Op op, DType dtype) const;

  std::int64_t bytes_;  // of an encoded message
  std::vector<std::int64_t> chunk_bytes_;
  Place place_;
  BufferPool::Buffer buffer_;
  std::size_t turn_;  // of the types
};

}  // namespace deft
