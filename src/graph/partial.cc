#include "graph/partial.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "op/resolved_op.h"

namespace headrace {
namespace {

constexpr int64_t kAll = int64_t{1} << 40;

bool IsSizes(DType d) { return d == DType::kInt32 || d == DType::kInt64; }

// A known integer scalar, else nothing.
std::optional<int64_t> ConstantScalar(const Edge& e) {
  const Tensor* t = e.index == 0 ? e.node->constant() : nullptr;
  if (t == nullptr || t->num_elements() != 1 || !IsSizes(t->dtype())) {
    return std::nullopt;
  }
  return t->IntAt(0);
}

// Looks back through nodes, at so many in all: graphs may be made to fan out.
class Walk {
 public:
  Shape Vector(const Edge& e);
  // A size, or -1 where it is not known.
  int64_t Scalar(const Edge& e);

 private:
  Shape Slice(const Node* n);
  Shape Strided(const Node* n);
  int64_t Picked(const Node* n);
  Shape Gathered(const Node* n);

  int left_ = 256;
};

Shape OfConstant(const Tensor& t) {
  if (t.rank() != 1 || !IsSizes(t.dtype())) return Shape::UnknownRank();
  Shape s;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    s.AddDim(std::max<int64_t>(t.IntAt(i), Shape::kUnknown));
  }
  return s;
}

int64_t At(const Shape& s, int64_t i) {
  if (!s.known_rank()) return Shape::kUnknown;
  if (i < 0) i += s.rank();
  if (i < 0 || i >= s.rank()) return Shape::kUnknown;
  return s[static_cast<int>(i)];
}

// x[i] with a constant i.
int64_t Walk::Picked(const Node* n) {
  const ResolvedOp& op = n->op();
  if (op.int_attr("shrink_axis_mask") != 1 || op.int_attr("ellipsis_mask") ||
      op.int_attr("new_axis_mask")) {
    return Shape::kUnknown;
  }
  const std::optional<int64_t> begin = ConstantScalar(n->input(1));
  return begin ? At(Vector(n->input(0)), *begin) : Shape::kUnknown;
}

int64_t Walk::Scalar(const Edge& e) {
  if (std::optional<int64_t> known = ConstantScalar(e)) {
    return std::max<int64_t>(*known, Shape::kUnknown);
  }
  if (--left_ < 0) return Shape::kUnknown;
  const Node* n = e.node;
  const std::string& op = n->op().name();
  if (op == "Cast" || op == "Identity") return Scalar(n->input(0));
  if (op == "StridedSlice") return Picked(n);
  if (op == "Unpack" && n->op().int_attr("axis") == 0) {
    return At(Vector(n->input(0)), e.index);
  }
  if (op == "Squeeze" || op == "Reshape") {
    const Shape s = Vector(n->input(0));
    return s.known_rank() && s.rank() == 1 ? s[0] : Shape::kUnknown;
  }
  if (op == "GatherV2") {
    const std::optional<int64_t> at = ConstantScalar(n->input(1));
    if (!at || *at < 0) return Shape::kUnknown;
    return At(Vector(n->input(0)), *at);
  }
  return Shape::kUnknown;
}

Shape Walk::Strided(const Node* n) {
  const ResolvedOp& op = n->op();
  if (op.int_attr("ellipsis_mask") || op.int_attr("shrink_axis_mask")) {
    return Shape::UnknownRank();
  }
  if (op.int_attr("new_axis_mask")) {  // [size] of a size
    const Shape& given = n->input(0).node->output_shape(n->input(0).index);
    if (!given.known_rank() || given.rank() != 0) return Shape::UnknownRank();
    return Shape{Scalar(n->input(0))};
  }
  const Shape s = Vector(n->input(0));
  const std::optional<int64_t> from =
      op.int_attr("begin_mask") & 1 ? 0 : ConstantScalar(n->input(1));
  const std::optional<int64_t> to =
      op.int_attr("end_mask") & 1 ? kAll : ConstantScalar(n->input(2));
  if (!s.known_rank() || !from || !to || ConstantScalar(n->input(3)) != 1) {
    return Shape::UnknownRank();
  }
  const int64_t rank = s.rank();
  int64_t begin = *from < 0 ? *from + rank : *from;
  int64_t end = *to < 0 ? *to + rank : *to;
  begin = std::clamp<int64_t>(begin, 0, rank);
  end = std::clamp<int64_t>(end, begin, rank);
  return Shape(s.dims().subspan(begin, end - begin));
}

Shape Walk::Slice(const Node* n) {
  const Shape s = Vector(n->input(0));
  const std::optional<int64_t> begin = ConstantScalar(n->input(1));
  const std::optional<int64_t> size = ConstantScalar(n->input(2));
  if (!s.known_rank() || !begin || !size || *begin < 0 || *begin > s.rank()) {
    return Shape::UnknownRank();
  }
  const int64_t count = *size < 0 ? s.rank() - *begin : *size;
  if (count > s.rank() - *begin) return Shape::UnknownRank();
  return Shape(s.dims().subspan(*begin, count));
}

Shape Walk::Gathered(const Node* n) {
  const Edge& e = n->input(1);
  const Tensor* at = e.index == 0 ? e.node->constant() : nullptr;
  const Shape s = Vector(n->input(0));
  if (at == nullptr || at->rank() != 1 || !IsSizes(at->dtype()) ||
      !s.known_rank()) {
    return Shape::UnknownRank();
  }
  Shape out;
  for (int64_t i = 0; i < at->num_elements(); ++i) {
    out.AddDim(at->IntAt(i) < 0 ? Shape::kUnknown : At(s, at->IntAt(i)));
  }
  return out;
}

Shape Walk::Vector(const Edge& e) {
  const Node* n = e.node;
  if (const Tensor* t = e.index == 0 ? n->constant() : nullptr) {
    return OfConstant(*t);
  }
  if (--left_ < 0) return Shape::UnknownRank();
  const std::string& op = n->op().name();
  if (op == "Shape") {
    const Edge& in = n->input(0);
    return in.node->output_shape(in.index);
  }
  if (op == "Cast" || op == "Identity") return Vector(n->input(0));
  if (op == "StridedSlice") return Strided(n);
  if (op == "Slice") return Slice(n);
  if (op == "GatherV2") return Gathered(n);
  if (op == "Pack" && n->op().int_attr("axis") == 0) {
    Shape s;
    for (const Edge& in : n->inputs()) s.AddDim(Scalar(in));
    return s;
  }
  if (op == "ConcatV2") {
    Shape s;
    for (int i = 0; i + 1 < n->num_inputs(); ++i) {
      s = s.Concat(Vector(n->input(i)));
    }
    return s;
  }
  if (op == "ExpandDims" || op == "Reshape") {
    const Edge& in = n->input(0);
    const Shape& given = in.node->output_shape(in.index);
    const Shape& made = n->output_shape(0);
    if (!given.known_rank() || !made.known_rank() || made.rank() != 1) {
      return Shape::UnknownRank();
    }
    if (given.rank() == 0) return Shape{Scalar(in)};
    return given.rank() == 1 ? Vector(in) : Shape::UnknownRank();
  }
  // Of anything else, how many sizes there are.
  const Shape& made = n->output_shape(e.index);
  if (!made.known_rank() || made.rank() != 1 || made[0] < 0 ||
      made[0] > Shape::kMaxRank) {
    return Shape::UnknownRank();
  }
  return Shape::UnknownOfRank(static_cast<int>(made[0]));
}

}  // namespace

Shape PartialShapeOf(const Edge& e) { return Walk().Vector(e); }

std::optional<Tensor> PartialConstant(const Node* n) {
  if (n->num_outputs() != 1 || !IsSizes(n->output_type(0))) return std::nullopt;
  const Shape& shape = n->output_shape(0);
  if (!shape.fully_known() || shape.rank() > 1) return std::nullopt;
  const Edge self{const_cast<Node*>(n), 0};
  const Shape found =
      shape.rank() == 0 ? Shape{Walk().Scalar(self)} : Walk().Vector(self);
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
