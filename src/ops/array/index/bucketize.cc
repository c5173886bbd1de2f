#include <algorithm>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/vectorize.h"

namespace headrace {
namespace {

class BucketizeKernel : public Kernel {
 public:
  explicit BucketizeKernel(const ResolvedOp& op)
      : boundaries_(op.attr<std::vector<float>>("boundaries")) {}
  static StatusOr<std::unique_ptr<Kernel>> Make(const ResolvedOp& op) {
    const auto& b = op.attr<std::vector<float>>("boundaries");
    // Looked at once, when the kernel is made.
    if (!std::is_sorted(b.begin(), b.end())) {
      return InvalidArgument("Expected sorted boundaries");
    }
    return std::unique_ptr<Kernel>(std::make_unique<BucketizeKernel>(op));
  }
  Status Run(KernelContext& c) override {
    const Tensor& in = c.input(0);
    int32_t* y = c.out<int32_t>(0);
    DispatchDType(
        in.dtype(), TypeList<int32_t, int64_t, float, double>{}, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const T* x = in.data<T>();
          ParallelFor(in.num_elements(), 10, [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              y[i] = Bucket(x[i]);
            }
          });
        });
    return OkStatus();
  }

 private:
  template <typename T>
  int32_t Bucket(T x) const {
    // Values equal to a boundary belong to the bucket above.
    return static_cast<int32_t>(
        std::upper_bound(boundaries_.begin(), boundaries_.end(), x) -
        boundaries_.begin());
  }

  const std::vector<float> boundaries_;
};

HR_OP(Bucketize)
    .Input("input: T")
    .Output("output: int32")
    .Attr("T: {int32, int64, float, double}")
    .Attr("boundaries: list(float)")
    .Doc("The number of the range between boundaries that each element is in.")
    .Shape(UnchangedShape)
    .Vectorize(VectorizeBroadcast)
    .Cpu(BucketizeKernel::Make);

}  // namespace
}  // namespace headrace
