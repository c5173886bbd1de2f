#include "headrace/layer/merge.h"

#include "cc/compose.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Throw;

namespace {

// fn of the first two, of that and the third, ...
Tensor Folded(const char* op, const std::vector<Tensor>& inputs) {
  Tensor out = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) out = Op(op, {out, inputs[i]});
  return out;
}

bool HaveMasks(const std::vector<Tensor>& inputs) {
  for (const Tensor& x : inputs) {
    if (x.mask()) return true;
  }
  return false;
}

std::string ListOf(const std::vector<TensorShape>& shapes) {
  std::string text;
  for (const TensorShape& s : shapes) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", s.ToString());
  }
  return "[" + text + "]";
}

}  // namespace

Merge::Merge(std::string name, size_t count)
    : Layer(std::move(name)), count_(count) {}

void Merge::CheckCount(size_t count) const {
  if (count_ == 0 || count == count_) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("A layer ", name(), " should be called on exactly ",
                     count_, " inputs. Received: ", count));
}

void Merge::MakeAllWeights(const std::vector<TensorShape>& inputs) {
  CheckCount(inputs.size());
  CheckShapes(inputs);
}

void Merge::CheckShapes(const std::vector<TensorShape>& shapes) const {
  for (size_t k = 1; k < shapes.size(); ++k) {
    const TensorShape &a = shapes[k - 1], &b = shapes[k];
    if (!a.known_rank || !b.known_rank) continue;
    const int both = std::min(a.rank(), b.rank());
    // From the last axis on; the first, the batch, is not compared.
    for (int i = 1; i < both; ++i) {
      const int64_t n = a[a.rank() - i], m = b[b.rank() - i];
      if (n == m || n == 1 || m == 1 || n < 0 || m < 0) continue;
      Throw(ErrorCode::kInvalidArgument,
            "Inputs have incompatible shapes. Received shapes " + a.ToString() +
                " and " + b.ToString());
    }
  }
}

Tensor Merge::CallAll(const std::vector<Tensor>& inputs, bool training) {
  CheckCount(inputs.size());
  int most = 0;
  bool known = true;
  for (const Tensor& x : inputs) {
    most = std::max(most, x.shape().rank());
    known = known && x.shape().known_rank;
  }
  std::vector<Tensor> wide;
  for (Tensor x : inputs) {
    while (known && x.shape().rank() < most) {
      // Behind the batch and not before it, where broadcasting would put it.
      x = Op("ExpandDims", {x, internal::Int(1)});
    }
    wide.push_back(x);
  }
  // One input alone is its own result, mask and all; MaskFor says the mask.
  return Merged(wide).with_mask({});
}

Tensor Merge::MaskFor(const std::vector<Tensor>& inputs) const {
  Tensor out;
  for (const Tensor& x : inputs) {
    const Tensor mask = x.mask();
    if (mask) out = out ? Op("LogicalAnd", {out, mask}) : mask;
  }
  return out;
}

Tensor Add::Merged(const std::vector<Tensor>& inputs) const {
  return Folded("AddV2", inputs);
}
Tensor Subtract::Merged(const std::vector<Tensor>& inputs) const {
  return Folded("Sub", inputs);
}
Tensor Multiply::Merged(const std::vector<Tensor>& inputs) const {
  return Folded("Mul", inputs);
}
Tensor Average::Merged(const std::vector<Tensor>& inputs) const {
  return Folded("AddV2", inputs) / inputs.size();
}
Tensor Maximum::Merged(const std::vector<Tensor>& inputs) const {
  return Folded("Maximum", inputs);
}
Tensor Minimum::Merged(const std::vector<Tensor>& inputs) const {
  return Folded("Minimum", inputs);
}

Concatenate::Concatenate(int axis) : Merge("concatenate"), axis_(axis) {}

void Concatenate::CheckShapes(const std::vector<TensorShape>& shapes) const {
  const int rank = shapes[0].rank();
  for (const TensorShape& s : shapes) {
    if (!s.known_rank || rank < 0) return;
    bool fits = s.rank() == rank && axis_ >= -rank && axis_ < rank;
    for (int i = 0; fits && i < rank; ++i) {
      if (i == (axis_ + rank) % rank) continue;
      const int64_t n = s[i], m = shapes[0][i];
      fits = n == m || n < 0 || m < 0;
    }
    if (fits) continue;
    Throw(ErrorCode::kInvalidArgument,
          "A `Concatenate` layer requires inputs with matching shapes except "
          "for the concatenation axis. Received: input_shape=" +
              ListOf(shapes));
  }
}

Tensor Concatenate::CallAll(const std::vector<Tensor>& inputs, bool training) {
  return Merged(inputs).with_mask({});
}

Tensor Concatenate::Merged(const std::vector<Tensor>& inputs) const {
  if (inputs.size() == 1) return inputs[0];
  std::vector<Tensor> all = inputs;
  all.push_back(internal::Int(axis_));
  return Op("ConcatV2", all, {{"N", static_cast<int64_t>(inputs.size())}});
}

Tensor Concatenate::MaskFor(const std::vector<Tensor>& inputs) const {
  if (!HaveMasks(inputs)) return Tensor();
  std::vector<Tensor> masks;
  for (const Tensor& x : inputs) {
    Tensor mask = x.mask();
    if (!mask) {
      // An input without a mask hides nothing.
      mask = Op("Fill", {internal::ShapeOf(x), Tensor(true)});
    } else if (mask.shape().rank() < x.shape().rank()) {
      mask = Op("BroadcastTo", {Op("ExpandDims", {mask, internal::Int(-1)}),
                                internal::ShapeOf(x)});
    }
    masks.push_back(mask);
  }
  // A step is shown where all inputs joined there show it.
  return internal::Reduce("All", Merged(masks), {-1});
}

Dot::Dot(int axis_of_first, int axis_of_second, bool normalize)
    : Merge("dot", 2),
      axes_{axis_of_first, axis_of_second},
      normalize_(normalize) {}

void Dot::CheckShapes(const std::vector<TensorShape>& shapes) const {
  int64_t sizes[2] = {-1, -1};
  for (int i = 0; i < 2; ++i) {
    const int rank = shapes[i].rank();
    if (rank < 2 || rank > 8 || axes_[i] < -rank || axes_[i] >= rank ||
        (axes_[i] + rank) % rank == 0) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("Dot: no axis ", axes_[i], " beside the batch in ",
                         shapes[i].ToString()));
    }
    sizes[i] = shapes[i][(axes_[i] + rank) % rank];
  }
  if (sizes[0] == sizes[1] || sizes[0] < 0 || sizes[1] < 0) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Incompatible input shapes: axis values ", sizes[0],
                     " (at axis ", axes_[0], ") != ", sizes[1], " (at axis ",
                     axes_[1], "). Full input shapes: ", ListOf(shapes)));
}

Tensor Dot::CallAll(const std::vector<Tensor>& inputs, bool training) {
  CheckCount(inputs.size());
  CheckShapes({inputs[0].shape(), inputs[1].shape()});
  return Merged(inputs);
}

Tensor Dot::Merged(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> sides;
  std::string equation, kept = "z";
  for (int k = 0; k < 2; ++k) {
    Tensor x = inputs[k];
    const int rank = x.shape().rank(), axis = (axes_[k] + rank) % rank;
    if (normalize_) {
      const Tensor squares =
          internal::Reduce("Sum", Op("Square", {x}), {axis}, true);
      x = x * Op("Rsqrt", {Op("Maximum",
                              {squares, internal::Number(x.dtype(), 1e-12)})});
    }
    sides.push_back(x);
    if (k == 1) equation += ",";
    equation += "z";
    for (int i = 1; i < rank; ++i) {
      // Ranks up to 8 need letters b to h and k to q: none meets another, nor y
      // (summed over) or z (the batch).
      const char letter = static_cast<char>((k == 0 ? 'a' : 'j') + i);
      equation += i == axis ? 'y' : letter;
      if (i != axis) kept += letter;
    }
  }
  const Tensor out =
      Op("Einsum", sides, {{"N", 2}, {"equation", equation + "->" + kept}});
  // Keras gives two axes at least: [batch, 1] for two vectors.
  return kept.size() == 1 ? Op("ExpandDims", {out, internal::Int(1)}) : out;
}

Tensor Dot::MaskFor(const std::vector<Tensor>& inputs) const {
  return Tensor();
}

}  // namespace headrace::tf::layers
