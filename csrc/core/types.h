// The vocabulary of the core: what travels, when, and how it ended.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace deft {

enum class Op : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kAllToAll };

// What an all-reduce or a reduce-scatter makes of the ranks' values.
enum class Reduction : std::uint8_t { kAverage, kSum };

enum class DType : std::uint8_t {
  kFloat16,
  kFloat32,
  kFloat64,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64
};

// Forward of step t comes before backward of step t.
enum class Stage : std::uint8_t { kForward, kBackward };

// A compute window: the time in which one stage of one step runs. Windows are totally ordered.
struct Window {
  std::int64_t step = 0;
  Stage stage = Stage::kForward;

  auto operator<=>(const Window&) const = default;
};

// How a message ended. kAborted: the link is gone (a peer died, shutdown); nothing more will
// arrive.
enum class Outcome : std::uint8_t { kOk, kAborted, kInvalid };

struct LinkStatus {
  Outcome outcome = Outcome::kOk;
  std::string reason;

  [[nodiscard]] bool ok() const { return outcome == Outcome::kOk; }
};

[[nodiscard]] std::int64_t bytes_of(DType dtype);
// Whether its sums are modulo its range, and neither scaled nor averaged.
[[nodiscard]] bool is_code(DType dtype);
[[nodiscard]] const char* name_of(Op op);
[[nodiscard]] const char* name_of(Stage stage);

}  // namespace deft
