#include "horovod/code_type.h"

#include <array>
#include <cstddef>

#include "horovod/adapters.h"

namespace deft {

namespace hvd = horovod::common;

namespace {

using Types = std::array<hvd::DataType, 4>;

constexpr Types kSummed{hvd::HOROVOD_INT32, hvd::HOROVOD_INT16, hvd::HOROVOD_UINT16,
                        hvd::HOROVOD_INT8};
constexpr Types kSummedWide{hvd::HOROVOD_INT32, hvd::HOROVOD_INT64, hvd::HOROVOD_INT32,
                            hvd::HOROVOD_INT64};
// The parts of the ranks may have any number of bytes.
constexpr Types kGathered{hvd::HOROVOD_UINT8, hvd::HOROVOD_INT8, hvd::HOROVOD_BOOL,
                          hvd::HOROVOD_UINT8};

}  // namespace

hvd::DataType type_of(const Message& message, Sums sums) {
  const hvd::DataType own = to_horovod(message.dtype);
  const auto turn = static_cast<std::size_t>(message.fusion_group) % Types().size();
  if (message.op == Op::kAllGather && message.dtype == DType::kUInt8) return kGathered[turn];
  if (message.op != Op::kAllReduce || message.dtype != DType::kInt32) return own;
  const hvd::DataType type = (sums == Sums::kAnyIntegers ? kSummed : kSummedWide)[turn];
  const std::int64_t bytes = message.input_elements * bytes_of(own);
  return bytes % bytes_of(type) == 0 ? type : own;
}

}  // namespace deft
