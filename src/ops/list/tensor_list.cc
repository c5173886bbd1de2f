#include "ops/list/tensor_list.h"

#include "base/allocator.h"
#include "base/stack_room.h"
#include "op/run_kernel.h"
#include "ops/math/elementwise/variant_add.h"

namespace headrace {
namespace {

// The sum of two elements; one that was never set counts as zero.
StatusOr<Tensor> AddElements(const Tensor& a, const Tensor& b) {
  if (!TensorList::IsSet(a)) return b;
  if (!TensorList::IsSet(b)) return a;
  if (a.dtype() == DType::kVariant) {
    HR_ASSIGN_OR_RETURN(Tensor sum, a.Clone());
    for (int64_t i = 0; i < sum.num_elements(); ++i) {
      HR_ASSIGN_OR_RETURN(
          sum.data<Variant>()[i],
          AddVariantValues(a.data<Variant>()[i], b.data<Variant>()[i]));
    }
    return sum;
  }
  return AddTensors(a, b);
}

Status CheckListsAdd(const TensorList& a, const TensorList& b) {
  if (a.dtype() != b.dtype()) {
    return InvalidArgument(
        "Trying to add two lists of tensors of different "
        "dtypes. One is ",
        DTypeName(a.dtype()), " and the other is ", DTypeName(b.dtype()));
  }
  if (a.size() != b.size()) {
    return InvalidArgument(
        "Trying to add two lists of tensors with different "
        "lengths. One is ",
        a.size(), " and the other is ", b.size());
  }
  return OkStatus();
}

// The list in `a` is changed where nobody else holds it: a loop's way back adds
// one element a turn to the gradient of a long list.
StatusOr<Variant> AddLists(Variant a, const Variant& vb) {
  // Never null: the registry looked at the type's name.
  const auto& old = *a.get<TensorList>();
  const auto& b = *vb.get<TensorList>();
  HR_RETURN_IF_ERROR(CheckListsAdd(old, b));
  StatusOr<Shape> shape = MergePartial(old.element_shape(), b.element_shape());
  if (!shape.ok()) {
    return InvalidArgument(
        "Trying to add two lists of tensors with incompatible element shapes. "
        "One is ",
        old.element_shape(), " and the other is ", b.element_shape());
  }
  if (old.in_rows() && b.in_rows() && old.rows().shape() == b.rows().shape()) {
    HR_ASSIGN_OR_RETURN(Tensor rows, AddTensors(old.rows(), b.rows()));
    return Variant(
        std::make_shared<TensorList>(std::move(rows), *std::move(shape)));
  }
  if (a.value().use_count() > 1) a = Variant(std::make_shared<TensorList>(old));
  auto& sum = const_cast<TensorList&>(*a.get<TensorList>());
  sum.set_element_shape(*std::move(shape));
  sum.set_max_size(-1);
  for (int64_t i = b.set_begin(); i < b.set_end(); ++i) {
    HR_ASSIGN_OR_RETURN(Tensor y, b.Item(i));
    if (!TensorList::IsSet(y)) continue;
    HR_ASSIGN_OR_RETURN(const Tensor x, sum.Item(i));
    HR_ASSIGN_OR_RETURN(y, AddElements(x, y));
    HR_RETURN_IF_ERROR(sum.Set(i, std::move(y)));
  }
  return a;
}

[[maybe_unused]] const bool registered =
    RegisterVariantAdd("tensorflow::TensorList", AddLists);

}  // namespace

std::string TensorList::DebugString() const { return "TensorList"; }

StatusOr<std::shared_ptr<const VariantValue>> TensorList::ZerosLike() const {
  // Lists may hold lists to any depth, and each level takes a part of the
  // stack.
  HR_RETURN_IF_ERROR(CheckStackRoom("a list of lists"));
  if (in_rows()) {
    HR_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(dtype_, rows_.shape()));
    FillZero(zeros);
    return std::shared_ptr<const VariantValue>(
        std::make_shared<TensorList>(std::move(zeros), element_shape_));
  }
  auto zero = std::make_shared<TensorList>(dtype_, element_shape_);
  zero->size_ = size_;
  zero->begin_ = begin_;
  zero->items_.reserve(items_.size());
  for (const Tensor& t : items_) {
    if (!IsSet(t)) {
      zero->items_.push_back(t);
      continue;
    }
    HR_ASSIGN_OR_RETURN(Tensor z, Tensor::Allocate(dtype_, t.shape()));
    if (dtype_ == DType::kVariant) {
      for (int64_t i = 0; i < t.num_elements(); ++i) {
        const Variant& v = t.data<Variant>()[i];
        if (v.empty()) continue;
        HR_ASSIGN_OR_RETURN(auto inner, v.value()->ZerosLike());
        z.data<Variant>()[i] = Variant(std::move(inner));
      }
    } else {
      FillZero(z);
    }
    zero->items_.push_back(std::move(z));
  }
  return std::shared_ptr<const VariantValue>(std::move(zero));
}

Tensor TensorList::Peek(int64_t i) const {
  if (i < set_begin() || i >= set_end()) return Tensor();
  if (!in_rows()) return items_[i - begin_];
  return rows_.Rows(i, i + 1).WithShape(rows_.shape().Sub(1, rows_.rank()));
}

StatusOr<Tensor> TensorList::Item(int64_t i) const {
  Tensor t = Peek(i);
  // Less is copied in no time, and a view of a few numbers would keep all
  // alive.
  constexpr size_t kLeastView = 4096;  // bytes
  if (!in_rows() ||
      (t.bytes() >= kLeastView &&
       reinterpret_cast<uintptr_t>(t.raw()) % Allocator::kAlignment == 0)) {
    return t;
  }
  return t.Clone();
}

StatusOr<Shape> TensorList::MergeSetShapes(Shape shape) const {
  if (in_rows()) {
    if (size() == 0) return shape;
    return MergePartial(shape, rows_.shape().Sub(1, rows_.rank()));
  }
  for (const Tensor& t : items_) {
    if (!IsSet(t)) continue;
    HR_ASSIGN_OR_RETURN(shape, MergePartial(shape, t.shape()));
  }
  return shape;
}

Status TensorList::Split() {
  const int64_t n = size();
  if (!in_rows() && static_cast<int64_t>(items_.size()) == n) return OkStatus();
  HR_RETURN_IF_ERROR(CheckRoomFor(n, sizeof(Tensor)));
  if (!in_rows() && begin_ == 0) {
    items_.resize(n);
    return OkStatus();
  }
  std::vector<Tensor> all(n);
  for (int64_t i = set_begin(); i < set_end(); ++i) {
    HR_ASSIGN_OR_RETURN(all[i], Item(i));
  }
  items_ = std::move(all);
  size_ = n;
  begin_ = 0;
  rows_ = Tensor();
  return OkStatus();
}

Status TensorList::Set(int64_t i, Tensor t) {
  if (!in_rows()) {
    // The first one, or the next one behind those that are set.
    if (items_.empty()) begin_ = i;
    if (i == set_end()) {
      items_.push_back(std::move(t));
      return OkStatus();
    }
  }
  if (in_rows() || i < set_begin() || i >= set_end()) {
    HR_RETURN_IF_ERROR(Split());
  }
  items_[i - begin_] = std::move(t);
  return OkStatus();
}

Status TensorList::Push(Tensor t) {
  HR_RETURN_IF_ERROR(Split());
  items_.push_back(std::move(t));
  ++size_;
  return OkStatus();
}

Status TensorList::Pop() {
  HR_RETURN_IF_ERROR(Split());
  items_.pop_back();
  --size_;
  return OkStatus();
}

Status TensorList::Resize(int64_t n) {
  // The size comes from a program and may ask for any amount.
  if (n > size()) HR_RETURN_IF_ERROR(CheckRoomFor(n, sizeof(Tensor)));
  if (in_rows()) HR_RETURN_IF_ERROR(Split());
  if (n < set_end()) items_.resize(std::max<int64_t>(0, n - begin_));
  if (items_.empty()) begin_ = 0;
  size_ = n;
  return OkStatus();
}

StatusOr<const TensorList*> ListInput(const KernelContext& c, int i) {
  const Tensor& t = c.input(i);
  if (t.rank() != 0) {
    return InvalidArgument("Input list must be a scalar saw: ", t.shape());
  }
  const Variant& v = t.scalar<Variant>();
  const auto* list = v.get<TensorList>();
  if (list == nullptr) {
    return InvalidArgument("Input handle is not a list. Saw: '",
                           v.DebugString(), "'");
  }
  return list;
}

StatusOr<const TensorList*> ListInput(const KernelContext& c, int i,
                                      DType dtype) {
  HR_ASSIGN_OR_RETURN(const TensorList* list, ListInput(c, i));
  HR_RETURN_IF_ERROR(CheckElementType(dtype, *list));
  return list;
}

StatusOr<TensorList*> ListToChange(KernelContext& c, int i) {
  HR_ASSIGN_OR_RETURN(const TensorList* list, ListInput(c, i));
  const Tensor& t = c.input(i);
  if (t.exclusive() && t.scalar<Variant>().value().use_count() == 1) {
    // Nobody else sees the list: the run holds this tensor alone and hands it
    // to this kernel for the last time (others are pinned by a second owner).
    c.set_output(0, t);
    return const_cast<TensorList*>(list);
  }
  auto copy = std::make_shared<TensorList>(*list);
  TensorList* changed = copy.get();
  SetListOutput(c, std::move(copy));
  return changed;
}

void SetListOutput(KernelContext& c, std::shared_ptr<TensorList> list) {
  c.set_output(0, Tensor::Scalar<Variant>(Variant(std::move(list))));
}

StatusOr<Shape> ShapeOfElements(const Tensor& t) {
  if (t.dtype() != DType::kInt32 && t.dtype() != DType::kInt64) {
    return InvalidArgument("element_shape must be an integer tensor, got ",
                           t.Describe());
  }
  if (t.rank() == 0) {
    if (t.IntAt(0) == -1) return Shape::UnknownRank();
    return InvalidArgument(
        "The only valid scalar shape tensor is the fully unknown shape "
        "specified as -1.");
  }
  if (t.rank() != 1) {
    return InvalidArgument("Shape must be at most rank 1 but is rank ",
                           t.rank());
  }
  absl::InlinedVector<int64_t, 6> dims(t.num_elements());
  // -1 stands for an unknown size.
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = t.IntAt(i);
  return Shape::Make(dims, /*allow_unknown=*/true);
}

StatusOr<Shape> MergePartial(const Shape& a, const Shape& b) {
  if (a.known_rank() && b.known_rank() && a.rank() != b.rank()) {
    return InvalidArgument(
        "PartialTensorShape: Incompatible ranks during merge: ", a.rank(),
        " vs. ", b.rank());
  }
  if (!a.CompatibleWith(b)) {
    return InvalidArgument(
        "PartialTensorShape: Incompatible shapes during merge: ", a, " vs. ",
        b);
  }
  return MergeShapes(a, b);
}

Status CheckElementType(DType op_dtype, const TensorList& list) {
  if (op_dtype == list.dtype()) return OkStatus();
  return InvalidArgument("Invalid data types; op elements ",
                         DTypeName(op_dtype), " but list elements ",
                         DTypeName(list.dtype()));
}

StatusOr<Tensor> ZeroElement(DType dtype, const Shape& shape) {
  HR_ASSIGN_OR_RETURN(Shape checked, Shape::Make(shape.dims()));
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, checked));
  FillZero(t);
  return t;
}

StatusOr<int64_t> ScalarIndex(const KernelContext& c, int i, StringView name) {
  const Tensor& t = c.input(i);
  if (t.num_elements() != 1) {
    return InvalidArgument("Expected argument ", i, " (", name,
                           ") to be a scalar. Received ", t.num_elements(),
                           " elements");
  }
  return t.IntAt(0);
}

HandlePart ListPart(const ShapeContext& c, int i) {
  const HandleData* data = c.input_handle(i);
  return data && !data->empty() ? data->front() : HandlePart{};
}

Shape ElementShapeInput(const ShapeContext& c, int i) {
  const Tensor* t = c.value(i);
  // The sizes may be known in part where the tensor is not.
  if (t == nullptr) {
    const Shape& s = c.input(i);
    if (s.known_rank() && s.rank() == 1) {
      StatusOr<Shape> partial = c.ShapeValue(i);
      if (partial.ok()) return *partial;
    }
    return Shape::UnknownRank();
  }
  StatusOr<Shape> s = ShapeOfElements(*t);
  // What is wrong with the tensor is the kernel's to tell.
  return s.ok() ? *s : Shape::UnknownRank();
}

Status CheckPartType(const ShapeContext& c, const HandlePart& part,
                     ListUse use) {
  const DType dtype = c.op().type_attr("element_dtype");
  if (part.dtype == DType::kInvalid || part.dtype == dtype) return OkStatus();
  const auto list = DTypeName(part.dtype), op = DTypeName(dtype);
  if (use == ListUse::kItem) {
    return InvalidArgument("Expected list with element dtype ", op,
                           " but got list with element dtype ", list);
  }
  return InvalidArgument(
      "Trying to ", use == ListUse::kPush ? "push to" : "read from",
      " list with wrong element dtype. List has type ", list, " but ",
      use == ListUse::kWhole ? "expected" : "trying to push element with",
      " type ", op);
}

Status WithMore(const Status& rule, StringView kernel) {
  if (rule.ok()) return OkStatus();
  return InvalidArgument(rule.message(), ": ", kernel);
}

void SetListHandle(ShapeContext& c, DType dtype, Shape element_shape) {
  c.set_output(0, Shape());
  c.set_output_handle(0, {HandlePart{dtype, std::move(element_shape)}});
}

Status SameList(ShapeContext& c) {
  HandlePart part = ListPart(c, 0);
  SetListHandle(c, part.dtype, part.shape);
  return OkStatus();
}

}  // namespace headrace
