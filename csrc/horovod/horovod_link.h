// The link over Horovod: messages become entries of its tensor queue through the enqueue functions
// that the library exports.
#pragma once

#include <cstdint>

#include "core/link/link.h"
#include "horovod/adapters.h"

namespace deft {

struct HorovodLinkOptions {
  std::int32_t process_set_id = 0;
  Reduction reduction = Reduction::kAverage;
  // Applied by Horovod itself, as for its own optimizer: that is what makes a synchronous plan
  // equal to stock Horovod bit for bit.
  double prescale = 1.0;
  double postscale = 1.0;
};

// Whether Horovod takes nothing (more): a rank has shut it down, or it failed.
bool horovod_has_ended();

class HorovodLink final : public Link {
 public:
  HorovodLink(HorovodLinkOptions options, Allocator allocator);

  void send(Message message, Completion done) override;
  // MPI may add up narrow integers with saturation.
  [[nodiscard]] bool takes_any_integers() const override;

 private:
  HorovodLinkOptions options_;
  Allocator allocator_;
};

}  // namespace deft
