// Operations on the bits of integers.
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

constexpr char kIntegerTypes[] =
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

[[maybe_unused]] const OpRegistrar kBitwiseOps[] = {
    BinaryOp("BitwiseAnd", kIntegerTypes, "The bits that x and y both have.")
        .Commutative()
        .NoGradient(),
    BinaryOp("BitwiseOr", kIntegerTypes, "The bits that x or y has.")
        .Commutative()
        .NoGradient(),
    BinaryOp("BitwiseXor", kIntegerTypes, "The bits that one of x and y has.")
        .Commutative()
        .NoGradient(),
    BinaryOp("LeftShift", kIntegerTypes,
             "x shifted left by y bits; y is clamped to the bits that x has.")
        .NoGradient(),
    BinaryOp("RightShift", kIntegerTypes,
             "x shifted right by y bits, keeping the sign; y is clamped to the "
             "bits that x has.")
        .NoGradient(),
    UnaryOp("Invert", kIntegerTypes, "All bits of x turned over.").NoGradient(),
};

template <typename T>
void CountBits(const void* x, void* y, int64_t n) {
  // Unsigned: a negative number would be widened with ones.
  const auto* from = static_cast<const std::make_unsigned_t<T>*>(x);
  auto* to = static_cast<uint8_t*>(y);
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<uint8_t>(__builtin_popcountll(from[i]));
  }
}
StatusOr<std::unique_ptr<Kernel>> MakeCount(const ResolvedOp& op) {
  std::unique_ptr<Kernel> kernel;
  DispatchDType(op.type_attr("T"), IntTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernel = MakeUnaryKernel(op, CountBits<T>, 1);
  });
  return kernel;
}
HR_OP(PopulationCount)
    .Input("x: T")
    .Output("y: uint8")
    .Attr(kIntegerTypes)
    .Doc("The number of bits that are set.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(MakeCount);

}  // namespace
}  // namespace headrace
