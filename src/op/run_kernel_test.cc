#include "op/run_kernel.h"

#include <new>
#include <stdexcept>
#include <vector>

#include "base/thread_pool.h"
#include "gtest/gtest.h"
#include "op/registry.h"

namespace headrace {
namespace {

// Runs `work` as the kernel of a NoOp.
template <typename F>
Status RunAsKernel(F work) {
  struct Working : Kernel {
    explicit Working(F work) : work(work) {}
    Status Run(KernelContext&) override { return work(); }
    F work;
  };
  HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("NoOp"));
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op, ResolveOp(*def, {}, {}));
  Working kernel(work);
  RunServices services;
  KernelContext c(*op, nullptr, nullptr, services);
  return RunKernel(&kernel, c);
}

TEST(RunKernel, MakesStatusesOfWhatKernelsThrow) {
  const Status no_memory = ResourceExhausted("out of memory in op NoOp");
  EXPECT_EQ(RunAsKernel([]() -> Status { throw std::bad_alloc(); }), no_memory);
  EXPECT_EQ(RunAsKernel([] {
              std::vector<int>().reserve(SIZE_MAX);
              return OkStatus();
            }),
            no_memory);
  EXPECT_EQ(RunAsKernel([]() -> Status { throw std::out_of_range("row 9"); }),
            Internal("op NoOp: row 9"));
  SetNumThreads(3);
  for (int64_t bad : {0, 300, 999}) {
    EXPECT_EQ(RunAsKernel([bad] {
                ParallelBlocks(1000, 1, 1e5, [&](int64_t i, int64_t, int64_t) {
                  if (i == bad) throw std::bad_alloc();
                });
                return OkStatus();
              }),
              no_memory);
  }
  SetNumThreads(0);
  EXPECT_TRUE(RunAsKernel([] { return OkStatus(); }).ok());
}

}  // namespace
}  // namespace headrace
