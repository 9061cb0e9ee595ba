// What a process group of torch.distributed says of its failures.
#pragma once

#include <exception>
#include <string>

namespace deft {

// Without the place in some source that it was raised at.
std::string reason_of(const std::exception& error);

}  // namespace deft
