// Memory of a device (-1: host) that lives as long as the returned pointer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace deft {

using Allocator = std::function<std::shared_ptr<void>(std::int64_t bytes, std::int32_t device)>;

}  // namespace deft
