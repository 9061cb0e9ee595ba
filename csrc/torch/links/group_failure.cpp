#include "torch/libtorch.h"

#include "torch/links/group_failure.h"

#include <c10/util/Exception.h>

#include <cstddef>

namespace deft {

std::string reason_of(const std::exception& error) {
  const auto* const from_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = from_torch == nullptr ? error.what() : from_torch->what_without_backtrace();
  // Gloo begins with the place in its source: "[/.../pair.cc:537] Connection closed by peer".
  const std::size_t place = text.find("] ");
  if (text.starts_with('[') && place != std::string::npos) text.erase(0, place + 2);
  return text;
}

}  // namespace deft
