#include "horovod/abi_check.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "horovod/common/operations.h"

#if !defined(DEFT_HOROVOD_VERSION) || !defined(DEFT_TORCH_VERSION)
#error "build with setup.py: it records the versions that are compiled against"
#endif

namespace deft {

namespace hvd = horovod::common;

namespace {

std::string yes_no(bool value) { return value ? "yes" : "no"; }

#if HAVE_NVTX
constexpr bool kCompiledForNvtx = true;
#else
constexpr bool kCompiledForNvtx = false;
#endif

// Size in bytes of a symbol of the loaded library, "absent" where it does not exist. The size of a
// vtable is 16 + 8 * virtual functions: it tells a GPU build (one virtual more) from a CPU build.
std::string symbol_size(const char* mangled) {
  const void* address = dlsym(RTLD_DEFAULT, mangled);
  if (address == nullptr) {
    return "absent";
  }
  Dl_info info{};
  ElfW(Sym)* symbol = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr) {
    return "unreadable";
  }
  return std::to_string(symbol->st_size);
}

}  // namespace

std::vector<AbiFact> abi_facts(const std::string& loaded_horovod_version,
                               const std::string& loaded_torch_version) {
  const char* nvtx = "_ZN7horovod6common11NvtxOpRange15nvtx_ops_handleE";
  const bool gpu = DEFT_HOROVOD_CUDA != 0;
  return {
      {"Horovod version", DEFT_HOROVOD_VERSION, loaded_horovod_version},
      {"torch version", DEFT_TORCH_VERSION, loaded_torch_version},
      {"Horovod with CUDA", yes_no(gpu), yes_no(hvd::horovod_cuda_built())},
      {"Horovod with NCCL", yes_no(DEFT_HOROVOD_NCCL != 0), yes_no(hvd::horovod_nccl_built() != 0)},
      {"Horovod with MPI", yes_no(DEFT_HOROVOD_MPI != 0), yes_no(hvd::horovod_mpi_built())},
      {"Horovod with Gloo", yes_no(DEFT_HOROVOD_GLOO != 0), yes_no(hvd::horovod_gloo_built())},
      {"Horovod with NVTX", yes_no(kCompiledForNvtx), yes_no(dlsym(RTLD_DEFAULT, nvtx) != nullptr)},
      {"size of Horovod's Tensor vtable", "64", symbol_size("_ZTVN7horovod5torch11TorchTensorE")},
      {"size of Horovod's OpContext vtable", "72",
       symbol_size("_ZTVN7horovod5torch14TorchOpContextE")},
      {"size of Horovod's ReadyEvent vtable", gpu ? "48" : "absent",
       symbol_size("_ZTVN7horovod5torch15TorchReadyEventE")},
  };
}

}  // namespace deft
