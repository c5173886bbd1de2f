#include "graph/partial.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "op/passes/partial_sizes.h"

namespace headrace {
namespace {

// Looks back through nodes, at so many in all: graphs may be made to fan out.
class SizesLookup {
 public:
  Shape Vector(const Edge& e);
  // A size, or -1 where it is not known.
  int64_t Scalar(const Edge& e);

 private:
  // Sizes in practice are a few calls away; behind 256 looks a size counts as
  // unknown, which is always right.
  int left_ = 256;
};

// What a node's op asks.
class NodeSizes : public PartialSizes {
 public:
  NodeSizes(SizesLookup* walk, const Edge& e, bool scalar)
      : walk_(walk), edge_(e), scalar_(scalar) {}
  bool is_scalar() const override { return scalar_; }
  const ResolvedOp& op() const override { return edge_.node->op(); }
  int output() const override { return edge_.index; }
  int num_inputs() const override { return edge_.node->num_inputs(); }
  const Shape& input_shape(int i) const override {
    const Edge& in = edge_.node->input(i);
    return in.node->output_shape(in.index);
  }
  const Shape& output_shape() const override {
    return edge_.node->output_shape(edge_.index);
  }
  const Tensor* Constant(int i) const override {
    const Edge& in = edge_.node->input(i);
    return in.index == 0 ? in.node->constant() : nullptr;
  }
  Shape Vector(int i) override { return walk_->Vector(edge_.node->input(i)); }
  int64_t Scalar(int i) override { return walk_->Scalar(edge_.node->input(i)); }

  Shape Ask() {
    const PartialSizesFn rule = edge_.node->def().partial_sizes;
    return rule ? rule(*this) : Uncertain();
  }

 private:
  SizesLookup* const walk_;
  const Edge edge_;
  const bool scalar_;
};

Shape OfConstant(const Tensor& t) {
  if (t.rank() != 1 || !PartialSizes::HoldsSizes(t.dtype())) {
    return Shape::UnknownRank();
  }
  Shape s;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    s.AddDim(std::max<int64_t>(t.IntAt(i), Shape::kUnknown));
  }
  return s;
}

int64_t SizesLookup::Scalar(const Edge& e) {
  const Tensor* t = e.index == 0 ? e.node->constant() : nullptr;
  if (t && t->num_elements() == 1 && PartialSizes::HoldsSizes(t->dtype())) {
    return std::max<int64_t>(t->IntAt(0), Shape::kUnknown);
  }
  if (--left_ < 0) return Shape::kUnknown;
  const Shape s = NodeSizes(this, e, true).Ask();
  return s.known_rank() && s.rank() == 1 ? s[0] : Shape::kUnknown;
}

Shape SizesLookup::Vector(const Edge& e) {
  if (const Tensor* t = e.index == 0 ? e.node->constant() : nullptr) {
    return OfConstant(*t);
  }
  if (const Shape* sizes = e.node->captured_sizes()) return *sizes;
  if (--left_ < 0) return Shape::UnknownRank();
  return NodeSizes(this, e, false).Ask();
}

}  // namespace

Shape PartialShapeOf(const Edge& e) { return SizesLookup().Vector(e); }

std::optional<Tensor> PartialConstant(const Node* n) {
  if (n->num_outputs() != 1 || !PartialSizes::HoldsSizes(n->output_type(0))) {
    return std::nullopt;
  }
  const Shape& shape = n->output_shape(0);
  if (!shape.fully_known() || shape.rank() > 1) return std::nullopt;
  const Edge self{const_cast<Node*>(n), 0};
  const Shape found = shape.rank() == 0 ? Shape{SizesLookup().Scalar(self)}
                                        : SizesLookup().Vector(self);
  const int64_t count = shape.num_elements();
  const bool narrow = n->output_type(0) == DType::kInt32;
  if (!found.fully_known() || found.rank() != count) return std::nullopt;
  for (int64_t d : found.dims()) {
    if (narrow && d > std::numeric_limits<int32_t>::max()) return std::nullopt;
  }
  StatusOr<Tensor> out = Tensor::Allocate(n->output_type(0), shape);
  if (!out.ok()) return std::nullopt;
  for (int i = 0; i < count; ++i) {
    if (narrow) {
      out->data<int32_t>()[i] = static_cast<int32_t>(found[i]);
    } else {
      out->data<int64_t>()[i] = found[i];
    }
  }
  return *std::move(out);
}

}  // namespace headrace
