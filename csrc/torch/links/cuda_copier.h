// Copies of a CUDA device for StagedLink: one stream out, one back, pinned memory between.
#pragma once

#include <cstdint>
#include <memory>

#include "core/link/staged_link.h"

namespace deft {

class CudaCopier final : public DeviceCopier {
 public:
  explicit CudaCopier(std::int32_t device);
  ~CudaCopier() override;
  CudaCopier(const CudaCopier&) = delete;
  CudaCopier& operator=(const CudaCopier&) = delete;

  std::shared_ptr<void> host_memory(std::int64_t bytes) override;
  void to_host(void* host, const void* device, std::int64_t bytes,
               const ReadySignal* after) override;
  void to_device(void* device, const void* host, std::int64_t bytes) override;
  [[nodiscard]] std::shared_ptr<DeviceCopier> another() const override;

 private:
  std::int32_t device_;
  void* out_;
  void* back_;
};

}  // namespace deft
