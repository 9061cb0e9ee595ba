#include "wire/codec.h"

#include <algorithm>
#include <string>

#ifdef __x86_64__
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

#include "core/errors.h"

namespace deft::wire {

namespace {

// Rounds to the nearest and keeps denormals while it lives: a thread may run with other settings
// (torch.set_flush_denormal), and bytes must not depend on them.
class PlainArithmetic {
 public:
#ifdef __x86_64__
  PlainArithmetic() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~PlainArithmetic() { _mm_setcsr(before_); }
#else
  PlainArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~PlainArithmetic() { std::fesetenv(&before_); }
#endif
  PlainArithmetic(const PlainArithmetic&) = delete;
  PlainArithmetic& operator=(const PlainArithmetic&) = delete;

 private:
#ifdef __x86_64__
  static constexpr unsigned kDefault = 0x1F80;  // all exceptions masked, to nearest, no flushing
  unsigned before_;
#else
  std::fenv_t before_{};
#endif
};

const Kernels& kernels_of(Kind kind) {
  switch (kind) {
    case Kind::kReference:
      return reference_kernels();
    case Kind::kPortable:
      return portable_kernels();
    case Kind::kAvx2:
      return avx2_kernels();
    case Kind::kAvx512:
      break;
  }
  return avx512_kernels();
}

}  // namespace

Codec::Codec(Kind kind) : kind_(kind), kernels_(&kernels_of(kind)) {
  const auto& here = kinds_here();
  if (std::find(here.begin(), here.end(), kind) == here.end()) {
    throw WireError(std::string("this processor cannot run the codec '") + name_of(kind) +
                    "', expected one of kinds_here()");
  }
}

void Codec::encode(Format format, const float* values, float* rest, std::int64_t elements,
                   std::byte* out) const {
  if (elements == 0) return;  // and buffers may be null
  const PlainArithmetic plain;
  kernels(format).encode(values, rest, elements, out);
}

void Codec::decode(Format format, const std::byte* in, std::int64_t elements, float* out) const {
  if (elements == 0) return;  // and buffers may be null
  const PlainArithmetic plain;
  kernels(format).decode(in, elements, out);
}

void Codec::decode_add(Format format, const std::byte* in, std::int64_t elements,
                       float* out) const {
  if (elements == 0) return;  // and buffers may be null
  const PlainArithmetic plain;
  kernels(format).decode_add(in, elements, out);
}

}  // namespace deft::wire
