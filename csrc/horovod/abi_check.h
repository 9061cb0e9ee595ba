// Is the Horovod in this process the one that this extension was compiled against?
//
// Horovod ships no headers and its class layouts depend on build flags, so a mismatch would not
// fail to link: it would corrupt memory. Every check compares a fact of the loaded library with
// what the compiler saw.
#pragma once

#include <string>
#include <vector>

namespace deft {

struct AbiFact {
  std::string what;
  std::string compiled;
  std::string loaded;

  [[nodiscard]] bool matches() const { return compiled == loaded; }
};

// The versions come from Python, where alone they are known.
[[nodiscard]] std::vector<AbiFact> abi_facts(const std::string& loaded_horovod_version,
                                             const std::string& loaded_torch_version);

}  // namespace deft
