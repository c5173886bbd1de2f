#include "op/vectorize.h"

#include <algorithm>
#include <numeric>

namespace headrace {
namespace {

Tensor SizesTensor(absl::Span<const int64_t> sizes) {
  std::vector<int32_t> narrow(sizes.begin(), sizes.end());
  return Tensor::Vector<int32_t>(narrow);
}

}  // namespace

Shape RowValue::row_shape() const {
  const Shape& s = value.shape();
  if (rows != Stacking::kStacked || s.rank() < 1) return s;
  return s.Sub(1, s.rank());
}

const Value& VectorizeContext::input(int i) const {
  static const Value* const none = new Value();
  return i >= 0 && i < num_inputs() ? inputs_[i].value : *none;
}

bool VectorizeContext::stacked(int i) const {
  return i < num_inputs() && inputs_[i].rows == Stacking::kStacked;
}

bool VectorizeContext::in_list(int i) const {
  return i < num_inputs() && inputs_[i].rows == Stacking::kInList;
}

int VectorizeContext::row_rank(int i) const {
  const int rank = input(i).rank();
  return rank < 0 ? -1 : rank - (stacked(i) ? 1 : 0);
}

Shape VectorizeContext::row_shape(int i) const {
  return i >= 0 && i < num_inputs() ? inputs_[i].row_shape()
                                    : Shape::UnknownRank();
}

int64_t VectorizeContext::known_count() const {
  const Tensor* t = Known(count_);
  return t ? t->scalar<int32_t>() : -1;
}

Status VectorizeContext::WantShared(int i) const {
  if (i >= num_inputs() || inputs_[i].shared()) return OkStatus();
  StringView name;
  for (size_t a = 0; a < op_->def().inputs.size(); ++a) {
    const ArgRange range = op_->input_range(static_cast<int>(a));
    if (i >= range.begin && i < range.end) name = op_->def().inputs[a].name;
  }
  return Unimplemented("Input \"", name, "\" of op '", op_->name(),
                       "' expected to be loop invariant.");
}

Status VectorizeContext::WantSharedFrom(int first) const {
  for (int i = first; i < num_inputs(); ++i) {
    HR_RETURN_IF_ERROR(WantShared(i));
  }
  return OkStatus();
}

Status VectorizeContext::WantRank(int i) const {
  if (row_rank(i) >= 0) return OkStatus();
  return Refuse(absl::StrCat("the rank of input ", i, " is not known."));
}

Status VectorizeContext::Refuse(StringView why) const {
  return Unimplemented("No pfor vectorization of op '", op_->name(),
                       "' for these operands: ", why);
}

Value VectorizeContext::Listed(int i) {
  const Value& list = input(i);
  if (in_list(i) || !ok()) return list;
  const HandleData* data = list.handle_data();
  if (stacked(i) || data == nullptr || data->size() != 1) {
    Fail(Refuse("the dtype of a TensorList's elements is not known."));
    return Value();
  }
  const DType dtype = (*data)[0].dtype;
  const Shape& shape = (*data)[0].shape;
  Value sizes = Int32(-1);
  if (shape.rank() >= 0) {
    sizes =
        Int32s(std::vector<int32_t>(shape.dims().begin(), shape.dims().end()));
  }
  Value all = (*this)("TensorListStack", {list, sizes},
                      {{"element_dtype", dtype}, {"num_elements", -1}});
  if (!ok()) return Value();
  // [length, ...] as [length, count, ...].
  Value rows = (*this)("BroadcastTo",
                       {(*this)("ExpandDims", {all, Int32(1)}),
                        Join({Sizes(all, 0, 1), CountSizes(), Sizes(all, 1)})});
  Value element = shape.rank() >= 0 ? Join({CountSizes(), sizes}) : Int32(-1);
  return (*this)("TensorListFromTensor", {rows, element},
                 {{"element_dtype", dtype}});
}

Value VectorizeContext::ElementSizes(int i) {
  if (input(i).rank() == 0) return input(i);
  return WithCount(input(i));
}

Value VectorizeContext::Repeat(const Value& v) {
  if (!ok()) return Value();
  if (v.dtype() == DType::kVariant || v.dtype() == DType::kResource) {
    // BroadcastTo copies numbers and texts; this hands on whatever there is.
    Value zeros = (*this)("Fill", {CountSizes(), Int32(0)});
    return (*this)("GatherV2",
                   {(*this)("ExpandDims", {v, Int32(0)}), zeros, Int32(0)});
  }
  return (*this)("BroadcastTo", {v, Join({CountSizes(), Sizes(v, 0)})});
}

Value VectorizeContext::PadRank(const Value& stacked, int from, int to) {
  if (!ok() || from >= to) return stacked;
  const std::vector<int32_t> ones(to - from, 1);
  return Reshape(stacked,
                 Join({Sizes(stacked, 0, 1), Int32s(ones), Sizes(stacked, 1)}));
}

Value VectorizeContext::Sizes(const Value& v, int begin, int end) {
  if (!ok()) return Value();
  const Shape& s = v.shape();
  if (s.rank() >= 0) {
    const int stop = end < 0 ? s.rank() : std::min(end, s.rank());
    std::vector<int64_t> known;
    for (int d = begin; d < stop && s[d] >= 0; ++d) known.push_back(s[d]);
    if (begin + static_cast<int>(known.size()) >= stop) {
      return Const(SizesTensor(known));
    }
  }
  Value shape = (*this)("Shape", {v}, {{"out_type", DType::kInt32}});
  if (begin == 0 && end < 0) return shape;
  AttrMap mask;
  if (end < 0) mask.Set("end_mask", 1);
  return (*this)("StridedSlice",
                 {shape, Int32s({begin}), Int32s({end}), Int32s({1})}, mask);
}

Value VectorizeContext::Join(absl::Span<const Value> sizes) {
  if (!ok()) return Value();
  std::vector<int64_t> known;
  bool all = true;
  std::vector<Value> parts;
  for (const Value& v : sizes) {
    const Tensor* t = Known(v);
    all = all && t;
    if (t) {
      for (int64_t i = 0; i < t->num_elements(); ++i) {
        known.push_back(t->data<int32_t>()[i]);
      }
    }
    if (!t || t->num_elements() > 0) parts.push_back(v);
  }
  if (all) return Const(SizesTensor(known));
  if (parts.size() == 1) return parts[0];
  parts.push_back(Int32(0));
  return (*this)("ConcatV2", parts);
}

Value VectorizeContext::CountSizes() {
  const int64_t n = known_count();
  if (n >= 0) return Int32s({static_cast<int32_t>(n)});
  return (*this)("ExpandDims", {count_, Int32(0)});
}

Value VectorizeContext::WithCount(const Value& sizes) {
  if (!ok()) return Value();
  const int64_t n = known_count();
  if (n >= 0) return WithFirst(sizes, n);
  Value count = CountSizes();
  if (sizes.dtype() != DType::kInt32) {
    count = (*this)("Cast", {count}, {{"DstT", sizes.dtype()}});
  }
  return (*this)("ConcatV2", {count, sizes, Int32(0)});
}

Value VectorizeContext::WithFirst(const Value& numbers, int64_t first) {
  if (!ok()) return Value();
  const Tensor* t = Known(numbers);
  if (t && t->dtype() == DType::kInt32 && first <= INT32_MAX) {
    std::vector<int32_t> all = {static_cast<int32_t>(first)};
    all.insert(all.end(), t->data<int32_t>(),
               t->data<int32_t>() + t->num_elements());
    return Int32s(all);
  }
  Value one =
      (*this)("ExpandDims",
              {Scalar(numbers.dtype(), static_cast<double>(first)), Int32(0)});
  return (*this)("ConcatV2", {one, numbers, Int32(0)});
}

Value VectorizeContext::WithRowNumbers(const Value& indices) {
  if (!ok()) return Value();
  const int rank = indices.rank();
  const std::vector<int32_t> ones(rank - 1, 1);
  Value rows =
      Reshape(RowNumbers(indices.dtype()), Join({CountSizes(), Int32s(ones)}));
  rows = (*this)("BroadcastTo",
                 {rows, Join({Sizes(indices, 0, rank - 1), Int32s({1})})});
  return (*this)("ConcatV2", {rows, indices, Int32(rank - 1)});
}

Value VectorizeContext::Product(const Value& sizes) {
  if (!ok()) return Value();
  if (const Tensor* t = Known(sizes)) {
    int64_t product = 1;
    for (int64_t i = 0; i < t->num_elements(); ++i) {
      // Sizes of a tensor that is there; a wrapped product is refused behind.
      if (__builtin_mul_overflow(product, t->data<int32_t>()[i], &product)) {
        product = -1;
      }
    }
    if (product >= 0 && product <= INT32_MAX) {
      return Int32s({static_cast<int32_t>(product)});
    }
  }
  return (*this)("Prod", {sizes, Int32s({0})}, {{"keep_dims", true}});
}

Value VectorizeContext::Reshape(const Value& v, const Value& sizes) {
  return (*this)("Reshape", {v, sizes});
}

Value VectorizeContext::Fold(const Value& v, int dims) {
  Value first = Product(Sizes(v, 0, dims));
  return Reshape(v, Join({first, Sizes(v, dims)}));
}

Value VectorizeContext::Unfold(const Value& v, const Value& like) {
  return Reshape(v, Join({CountSizes(), Sizes(like, 1, 2), Sizes(v, 1)}));
}

Value VectorizeContext::Move(const Value& v, int from, int to) {
  if (!ok() || from == to) return v;
  std::vector<int32_t> order(v.rank());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return (*this)("Transpose", {v, Int32s(order)});
}

Value VectorizeContext::RowsAsChannels(const Value& x) {
  if (!ok()) return Value();
  const int rank = x.rank();
  Value y = Move(x, 0, rank - 2);
  return Reshape(y, Join({Sizes(y, 0, rank - 2), Product(Sizes(y, rank - 2))}));
}

Value VectorizeContext::ChannelsAsRows(const Value& y, const Value& channels) {
  if (!ok()) return Value();
  const int rank = y.rank();
  Value rows =
      Reshape(y, Join({Sizes(y, 0, rank - 1), CountSizes(), channels}));
  return ok() ? Move(rows, rank - 1, 0) : rows;
}

Value VectorizeContext::RowNumbers(DType dtype) {
  Value all = (*this)("Range", {Int32(0), count_, Int32(1)});
  return dtype == DType::kInt32 ? all
                                : (*this)("Cast", {all}, {{"DstT", dtype}});
}

Value VectorizeContext::ShiftAxes(const Value& axes) {
  if (!ok()) return Value();
  const Value zero = Scalar(axes.dtype(), 0);
  Value shifted = (*this)("AddV2", {axes, Scalar(axes.dtype(), 1)});
  if (const Tensor* t = Known(axes);
      t && t->dtype() == DType::kInt32 && t->shape().rank() <= 1) {
    std::vector<int32_t> known(t->data<int32_t>(),
                               t->data<int32_t>() + t->num_elements());
    for (int32_t& a : known) a += a >= 0 && a < INT32_MAX ? 1 : 0;
    return t->shape().rank() == 0 ? Int32(known[0]) : Int32s(known);
  }
  return (*this)("SelectV2",
                 {(*this)("Less", {axes, zero}), axes, std::move(shifted)});
}

ValueList VectorizeContext::Again(absl::Span<const Value> inputs) {
  ValueList outputs;
  if (!ok()) return outputs;
  for (const Value& v : inputs) {
    if (!v) {
      Fail(Internal(op_->name(), ": an input is missing"));
      return outputs;
    }
  }
  Status s = Emit(op_, inputs, &outputs);
  if (!s.ok()) {
    Fail(std::move(s));
    outputs.clear();
  }
  return outputs;
}

ValueList VectorizeContext::AgainWith(absl::Span<const Value> inputs,
                                      const AttrMap& changed) {
  AttrMap attrs;
  for (const auto& [name, value] : op_->attrs()) {
    // What follows from the inputs follows from these.
    if (!op_->def().IsInferred(name)) attrs.Set(name, value);
  }
  for (const auto& [name, value] : changed) attrs.Set(name, value);
  return All(op_->name(), inputs, attrs);
}

Status VectorizeContext::SetAll(const ValueList& outputs, Stacking rows) {
  HR_RETURN_IF_ERROR(status());
  for (size_t i = 0; i < outputs.size() && i < results_.size(); ++i) {
    set(static_cast<int>(i), outputs[i], rows);
  }
  return OkStatus();
}

Status VectorizeContext::Set(Value v, Stacking rows) {
  HR_RETURN_IF_ERROR(status());
  set(0, std::move(v), rows);
  return OkStatus();
}

Status VectorizeInLoop(VectorizeContext& c) {
  c.SetInLoop();
  return c.Refuse("it is done row by row.");
}

Status VectorizeBroadcast(VectorizeContext& c) {
  int most = 0;
  const bool alone = c.num_inputs() == 1;
  for (int i = 0; i < c.num_inputs() && !alone; ++i) {
    HR_RETURN_IF_ERROR(c.WantRank(i));
    most = std::max(most, c.row_rank(i));
  }
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    inputs.push_back(c.stacked(i) && !alone
                         ? c.PadRank(c.input(i), c.row_rank(i), most)
                         : c.input(i));
  }
  return c.SetAll(c.Again(inputs));
}

Status VectorizeBatched(VectorizeContext& c) {
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.Stacked(i));
  return c.SetAll(c.Again(inputs));
}

Status VectorizeFirst(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  std::vector<Value> inputs;
  for (const RowValue& v : c.inputs()) inputs.push_back(v.value);
  return c.SetAll(c.Again(inputs));
}

Status VectorizeForward(VectorizeContext& c) {
  std::vector<Value> inputs;
  for (const RowValue& v : c.inputs()) inputs.push_back(v.value);
  // Without what marks the node alone: the name of a gradient, say, which is
  // one of single rows.
  ValueList outputs = c.All(c.op().name(), inputs);
  HR_RETURN_IF_ERROR(c.status());
  for (size_t i = 0; i < outputs.size(); ++i) {
    c.set(static_cast<int>(i), outputs[i], c.inputs()[i].rows);
  }
  return OkStatus();
}

Status VectorizeFolded(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  std::vector<Value> inputs;
  for (const RowValue& v : c.inputs()) inputs.push_back(v.value);
  inputs[0] = c.Fold(inputs[0]);
  ValueList outputs = c.Again(inputs);
  for (Value& v : outputs) v = c.Unfold(v, c.input(0));
  return c.SetAll(outputs);
}

Status VectorizeFoldedAll(VectorizeContext& c) {
  std::vector<Value> stacked, folded;
  for (int i = 0; i < c.num_inputs(); ++i) {
    stacked.push_back(c.Stacked(i));
    folded.push_back(c.Fold(stacked.back()));
  }
  ValueList outputs = c.Again(folded);
  for (Value& v : outputs) v = c.Unfold(v, stacked[0]);
  return c.SetAll(outputs);
}

Status VectorizeOverAxes(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  return c.SetAll(c.Again({c.input(0), c.ShiftAxes(c.input(1))}));
}

Status VectorizeRandom(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(0));
  std::vector<Value> inputs;
  for (const RowValue& v : c.inputs()) {
    if (!v.shared()) return c.Refuse("its parameters differ by row.");
    inputs.push_back(v.value);
  }
  Value count = c.CountSizes();
  if (inputs[0].dtype() != DType::kInt32 && c.ok()) {
    count = c("Cast", {count}, {{"DstT", inputs[0].dtype()}});
  }
  inputs[0] = c("ConcatV2", {count, inputs[0], c.Int32(0)});
  return c.SetAll(c.Again(inputs));
}

}  // namespace headrace
