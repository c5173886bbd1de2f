#include "op/shape_context.h"

#include <algorithm>

#include "op/shared_refusal.h"

namespace headrace {

Status ShapeContext::IntValue(int i, bool* known, int64_t* v) const {
  const Tensor* t = value(i);
  *known = t != nullptr;
  if (t == nullptr) return OkStatus();
  if (t->num_elements() != 1 ||
      (t->dtype() != DType::kInt32 && t->dtype() != DType::kInt64)) {
    return InvalidArgument(op_.name(), ": input ", i,
                           " must be an integer scalar but is ", t->Describe());
  }
  *v = t->IntAt(0);
  return OkStatus();
}

bool ShapeContext::IntValues(int i,
                             absl::InlinedVector<int64_t, 8>* out) const {
  const Tensor* t = value(i);
  if (t == nullptr ||
      (t->dtype() != DType::kInt32 && t->dtype() != DType::kInt64)) {
    return false;
  }
  int64_t n = t->num_elements();
  out->resize(n);
  for (int64_t k = 0; k < n; ++k) (*out)[k] = t->IntAt(k);
  return true;
}

StatusOr<Shape> ShapeContext::ShapeValue(int i) const {
  const Shape& s = input(i);
  if (s.known_rank() && s.rank() > 1) {
    return InvalidArgument(op_.name(), ": a shape must be a vector, but is ",
                           s.ToString());
  }
  absl::InlinedVector<int64_t, 8> dims;
  if (IntValues(i, &dims)) {
    // A -1 is the one form of "unknown" that a scalar or vector may carry.
    return Shape::Make(dims, /*allow_unknown=*/true);
  }
  // Where the whole vector is not known, the sizes of it that are.
  if (partial_fn_) {
    Shape partial = partial_fn_(partial_arg_, i);
    if (partial.known_rank()) return partial;
  }
  if (s.known_rank() && s.rank() == 1 && s[0] >= 0 && s[0] <= Shape::kMaxRank) {
    return Shape::UnknownOfRank(static_cast<int>(s[0]));
  }
  return Shape::UnknownRank();
}

void ShapeContext::set_output_handle(int i, HandleData data) {
  if (static_cast<int>(output_handles_.size()) <= i) {
    output_handles_.resize(i + 1);
  }
  output_handles_[i] = std::make_shared<const HandleData>(std::move(data));
}

[[gnu::hot]] Status RunShapeRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(c.op().def().shape_fn(c));
  for (const Shape& s : c.outputs()) {
    int64_t count;
    // (Make says which sizes are too large.)
    if (s.fully_known() && !CountElements(s, &count))
      return Shape::Make(s.dims()).status();
  }
  return OkStatus();
}

Status CheckRank(const Shape& s, int rank) {
  if (!s.known_rank() || s.rank() == rank) return OkStatus();
  return InvalidArgument("Shape must be rank ", rank, " but is rank ",
                         s.rank());
}
Status CheckRankAtLeast(const Shape& s, int rank) {
  if (!s.known_rank() || s.rank() >= rank) return OkStatus();
  return InvalidArgument("Shape must be at least rank ", rank, " but is rank ",
                         s.rank());
}
Status CheckRankAtMost(const Shape& s, int rank) {
  if (!s.known_rank() || s.rank() <= rank) return OkStatus();
  return InvalidArgument("Shape must be at most rank ", rank, " but is rank ",
                         s.rank());
}

StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Expected dimension in the range [", -rank, ", ",
                           rank, "), but got ", axis);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

[[gnu::hot]] Status UnchangedShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return OkStatus();
}

Status ScalarShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
  return OkStatus();
}

[[gnu::hot]] Status BroadcastShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  if (a == b && a.known_rank()) {
    c.set_output(0, a);
    return OkStatus();
  }
  StatusOr<Shape> s = BroadcastShapes(a, b);
  if (!s.ok()) return c.Refuse(NotBroadcast(a, b), s.status());
  c.set_output(0, *std::move(s));
  return OkStatus();
}

Status NoOutputs(ShapeContext&) { return OkStatus(); }
Status UnknownShape(ShapeContext&) { return OkStatus(); }

Status ReductionShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(1), 1));
  bool keep = c.op().bool_attr("keep_dims");
  absl::InlinedVector<int64_t, 8> axes;
  if (!c.IntValues(1, &axes)) {
    if (keep && in.known_rank()) {
      c.set_output(0, Shape::UnknownOfRank(in.rank()));
    }
    return OkStatus();
  }
  if (!in.known_rank()) return OkStatus();
  absl::InlinedVector<bool, 8> gone(in.rank(), false);
  for (int64_t axis : axes) {
    if (axis < -in.rank() || axis >= in.rank()) {
      return WrongReductionAxis(c, axis, in.rank());
    }
    gone[axis < 0 ? axis + in.rank() : axis] = true;
  }
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (!gone[i]) {
      out.AddDim(in[i]);
    } else if (keep) {
      out.AddDim(1);
    }
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status MergeAllInputs(ShapeContext& c) {
  Shape s = Shape::UnknownRank();
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_ASSIGN_OR_RETURN(s, MergeShapes(s, c.input(i)));
  }
  c.set_output(0, std::move(s));
  return OkStatus();
}

}  // namespace headrace
