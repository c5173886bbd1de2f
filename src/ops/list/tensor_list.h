// The list of tensors that variants hold, and how kernels reach and change it.
#pragma once

#include <memory>
#include <vector>

#include "op/op.h"
#include "tensor/variant.h"

namespace headrace {

// Elements one by one, of which those before and behind a range may be left
// out: they were never set. Or, where all are set and nothing was changed
// since, the rows of one tensor.
class TensorList : public VariantValue {
 public:
  TensorList(DType dtype, Shape element_shape)
      : dtype_(dtype), element_shape_(std::move(element_shape)) {}
  // `rows` must be counted; it lives as long as the list.
  TensorList(Tensor rows, Shape element_shape)
      : dtype_(rows.dtype()),
        element_shape_(std::move(element_shape)),
        rows_(std::move(rows)) {}
  StringView type_name() const override { return "tensorflow::TensorList"; }
  std::string DebugString() const override;
  StatusOr<std::shared_ptr<const VariantValue>> ZerosLike() const override;

  DType dtype() const { return dtype_; }
  // What is known of every element's shape.
  const Shape& element_shape() const { return element_shape_; }
  void set_element_shape(Shape shape) { element_shape_ = std::move(shape); }
  int64_t size() const { return in_rows() ? rows_.dim(0) : size_; }
  // Elements it may have at most; -1: any number.
  int64_t max_size() const { return max_size_; }
  void set_max_size(int64_t n) { max_size_ = n; }

  // Whether it is the rows of one tensor.
  bool in_rows() const { return rows_.has_buffer(); }
  const Tensor& rows() const { return rows_; }
  // Elements outside [set_begin(), set_end()) were never set.
  int64_t set_begin() const { return in_rows() ? 0 : begin_; }
  int64_t set_end() const {
    return in_rows() ? size() : begin_ + static_cast<int64_t>(items_.size());
  }
  // Those within, of a list that is not in rows.
  absl::Span<const Tensor> apart() const { return items_; }
  // Element i; one without a buffer was never set. A row, which is to be read
  // or copied alone: it may not be aligned as tensors are.
  Tensor Peek(int64_t i) const;
  // Element i, to be handed out.
  StatusOr<Tensor> Item(int64_t i) const;
  static bool IsSet(const Tensor& t) { return t.has_buffer(); }
  // What is known of the shape of those that are set, with `shape`.
  StatusOr<Shape> MergeSetShapes(Shape shape) const;

  // Sets element i, which is there.
  Status Set(int64_t i, Tensor t);
  Status Push(Tensor t);
  // Drops the last element, which is there.
  Status Pop();
  // Makes it `n` elements long: ResourceExhausted where no memory is.
  Status Resize(int64_t n);

 private:
  // From here on elements are one by one, and all of them in items_.
  Status Split();

  DType dtype_;
  Shape element_shape_;
  int64_t max_size_ = -1;
  int64_t size_ = 0;
  int64_t begin_ = 0;  // items_[0] is this element
  std::vector<Tensor> items_;
  Tensor rows_;
};

// The list that scalar input i holds; valid while the input is.
StatusOr<const TensorList*> ListInput(const KernelContext& c, int i);
// The same, of elements of `dtype`.
StatusOr<const TensorList*> ListInput(const KernelContext& c, int i,
                                      DType dtype);

// A list to change that begins as input i's: the very same where nobody else
// holds it (then changing costs no copy), else a copy. Set as output 0.
StatusOr<TensorList*> ListToChange(KernelContext& c, int i);
// Makes output 0 a scalar that holds `list`.
void SetListOutput(KernelContext& c, std::shared_ptr<TensorList> list);

// The shape that an element_shape input holds: a vector with -1 for unknown
// sizes, or the scalar -1 for nothing known.
StatusOr<Shape> ShapeOfElements(const Tensor& t);
// MergeShapes in upstream's words for lists.
StatusOr<Shape> MergePartial(const Shape& a, const Shape& b);
// `t` is acceptable where elements of `dtype` are.
Status CheckElementType(DType op_dtype, const TensorList& list);
// Zeros, of what elements that were never set stand for.
StatusOr<Tensor> ZeroElement(DType dtype, const Shape& shape);
// A scalar int32 input.
StatusOr<int64_t> ScalarIndex(const KernelContext& c, int i, StringView name);

// --- For shape rules: what is known of the elements behind a list.
HandlePart ListPart(const ShapeContext& c, int i);
// Element shape of an element_shape input i, as far as it is known.
Shape ElementShapeInput(const ShapeContext& c, int i);
// InvalidArgument where a graph shows that the list is one of another type than
// the op's element_dtype, in the words that fit what the op does with it.
enum class ListUse { kItem, kPush, kPop, kWhole };
Status CheckPartType(const ShapeContext& c, const HandlePart& part,
                     ListUse use);
// What a shape rule says in graphs, with what upstream's kernel says eagerly.
Status WithMore(const Status& rule, StringView kernel);
// Output 0 is a scalar list of such elements.
void SetListHandle(ShapeContext& c, DType dtype, Shape element_shape);
// Output 0 is a list like input 0.
Status SameList(ShapeContext& c);

}  // namespace headrace
