// Kernels' common parts for pooling ops: layouts, and windows that come as
// attributes or (in the V2 ops) as the last two inputs.
#pragma once

#include "ops/nn/pool/pooling.h"

namespace headrace {

// Layouts of images.
inline constexpr char kPoolFormats[] = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
// Whether the op pools volumes, not images.
bool Pools3D(const ResolvedOp& op);

// A pooling op at work: attributes complete, tensors with channels last.
class PoolRun {
 public:
  // `x_shape` is the unpooled shape in the op's layout.
  static StatusOr<PoolRun> Make(const KernelContext& c, const Shape& x_shape);
  const PoolGeometry& geometry() const { return geometry_; }
  // Input i with its channels last.
  StatusOr<Tensor> In(const KernelContext& c, int i) const;
  // Room for the op's result; Finish hands it over.
  StatusOr<Tensor> Out(const KernelContext& c) const;
  Status Finish(const KernelContext& c, const Tensor& made) const;
  // The maxima of input 0.
  StatusOr<Tensor> Places(const KernelContext& c) const;

 private:
  PoolAttrs attrs_;
  PoolGeometry geometry_;
};

// The attributes for a shape rule; false where V2's inputs are not known.
StatusOr<bool> PoolAttrsFor(ShapeContext& c, PoolAttrs* attrs);
// Output 0 is input 0 pooled.
Status PooledShape(ShapeContext& c);

// Signatures: "ksize", "strides", "padding", "data_format" of the 2-D and 3-D
// ops, and of the V2 ops.
OpBuilder& WithPool2D(OpBuilder& op, bool explicit_paddings,
                      const char* formats);
OpBuilder& WithPool3D(OpBuilder& op);

// The attributes of `op` for another op of the family, which may lack
// explicit_paddings.
AttrMap PoolAttrMap(const ResolvedOp& op, bool explicit_paddings = true);

}  // namespace headrace
