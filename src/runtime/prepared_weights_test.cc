#include "runtime/prepared_weights.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "op/registry.h"

namespace headrace {
namespace {

// A product whose weights are being prepared until it is told to end.
struct SlowToPrepare : ProductKernel {
  int weights() const override { return 0; }
  bool tells_rows() const override { return false; }
  bool prepares() const override { return true; }
  StatusOr<std::shared_ptr<const void>> Prepare(
      const KernelContext&) const override {
    begun = true;
    while (!end) usleep(1000);
    return std::make_shared<const int>(7);
  }
  Status RunPrepared(KernelContext&, const void*, const Tail*) const override {
    return OkStatus();
  }
  mutable std::atomic<bool> begun{false};
  std::atomic<bool> end{false};
};

TEST(PreparedWeights, AForkWhileTheyAreMadeHoldsNobodyUp) {
  SlowToPrepare product;
  PreparedWeights kept(PreparedWeights::Source::kConstant);
  const auto get = [&] {
    Tensor weights = *Tensor::Allocate(DType::kFloat, Shape{100, 100});
    Tensor* inputs[] = {&weights};
    auto op = *ResolveOp(**LookUpOp("Identity"), {DType::kFloat}, {});
    RunServices services;
    KernelContext c(*op, inputs, nullptr, services);
    const StatusOr<std::shared_ptr<const void>> made =
        kept.Get(product, c, /*repeated=*/false);
    return made.ok() && *made ? *static_cast<const int*>(made->get()) : 0;
  };
  std::thread first([&] { EXPECT_EQ(get(), 7); });
  while (!product.begun) usleep(1000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);  // ends what waits for a thread that it has not
    product.end = true;
    _exit(get());
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  product.end = true;
  first.join();
}

}  // namespace
}  // namespace headrace
