#include "wire/kinds.h"

#include <string>

#include "core/errors.h"

namespace deft::wire {

namespace {

std::vector<Kind> find_kinds() {
  std::vector<Kind> kinds = {Kind::kReference, Kind::kPortable};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) kinds.push_back(Kind::kAvx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    kinds.push_back(Kind::kAvx512);
  }
#endif
  return kinds;
}

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kReference:
      return "reference";
    case Kind::kPortable:
      return "portable";
    case Kind::kAvx2:
      return "avx2";
    case Kind::kAvx512:
      return "avx512";
  }
  return "unknown";
}

const std::vector<Kind>& kinds_here() {
  static const std::vector<Kind> kinds = find_kinds();
  return kinds;
}

Kind kind_of(std::string_view name) {
  if (name == "auto") return kinds_here().back();
  std::string known = "auto";
  for (const Kind kind : kinds_here()) {
    if (name == name_of(kind)) return kind;
    known += std::string(", ") + name_of(kind);
  }
  throw WireError("no codec '" + std::string(name) + "' here, expected one of " + known);
}

}  // namespace deft::wire
