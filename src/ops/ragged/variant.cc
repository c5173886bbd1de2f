// RaggedTensorToVariant, RaggedTensorFromVariant: ragged tensors as elements.
#include "ops/ragged/variant.h"

#include "op/op.h"
#include "ops/ragged/splits.h"

namespace headrace {
namespace {

Tensor Held(std::shared_ptr<RaggedVariant> v) {
  return Tensor::Scalar(
      Variant(std::shared_ptr<const VariantValue>(std::move(v))));
}

StatusOr<std::vector<std::vector<int64_t>>> SplitsInputs(const KernelContext& c,
                                                         const Tensor& values) {
  std::vector<std::vector<int64_t>> all;
  const ArgRange range = c.op().input_range("rt_nested_splits");
  for (int i = range.begin; i < range.end; ++i) {
    const Tensor& t = c.input(i);
    if (t.rank() != 1 || t.num_elements() < 1) {
      return InvalidArgument("row splits must be a vector of at least one");
    }
    std::vector<int64_t> splits;
    for (int64_t k = 0; k < t.num_elements(); ++k) {
      splits.push_back(t.IntAt(k));
    }
    all.push_back(std::move(splits));
  }
  if (!all.empty() && values.rank() < 1) {
    return InvalidArgument("ragged values must be at least a vector");
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t next = i + 1 < all.size()
                             ? static_cast<int64_t>(all[i + 1].size()) - 1
                             : values.dim(0);
    if (all[i][0] != 0 || all[i].back() != next) {
      return InvalidArgument("Ragged splits must point past the last value");
    }
    for (size_t k = 1; k < all[i].size(); ++k) {
      if (all[i][k] < all[i][k - 1]) {
        return InvalidArgument("Invalid ragged splits: they must not decrease");
      }
    }
  }
  return all;
}

// Row `row` of a ragged tensor with splits.
std::shared_ptr<RaggedVariant> RowOfRagged(
    const std::vector<std::vector<int64_t>>& splits, const Tensor& values,
    int64_t row) {
  auto out = std::make_shared<RaggedVariant>();
  int64_t begin = splits[0][row], end = splits[0][row + 1];
  for (size_t i = 1; i < splits.size(); ++i) {
    std::vector<int64_t> part;
    for (int64_t k = begin; k <= end; ++k) {
      part.push_back(splits[i][k] - splits[i][begin]);
    }
    out->splits.push_back(std::move(part));
    const int64_t first = splits[i][begin];
    end = splits[i][end];
    begin = first;
  }
  out->values = values.Rows(begin, end);
  return out;
}

Status ToVariant(KernelContext& c) {
  const Tensor& values = c.input(c.num_inputs() - 1);
  HR_ASSIGN_OR_RETURN(auto splits, SplitsInputs(c, values));
  if (!c.op().bool_attr("batched_input")) {
    auto v = std::make_shared<RaggedVariant>();
    v->splits = std::move(splits);
    v->values = values;
    c.set_output(0, Held(std::move(v)));
    return OkStatus();
  }
  if (splits.empty() && values.rank() < 1) {
    return InvalidArgument("a batch of ragged tensors must not be a scalar");
  }
  const int64_t rows = splits.empty()
                           ? values.dim(0)
                           : static_cast<int64_t>(splits[0].size()) - 1;
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{rows}));
  for (int64_t i = 0; i < rows; ++i) {
    std::shared_ptr<RaggedVariant> v;
    if (splits.empty()) {
      v = std::make_shared<RaggedVariant>();
      v->values =
          values.Rows(i, i + 1).WithShape(values.shape().Sub(1, values.rank()));
    } else {
      v = RowOfRagged(splits, values, i);
    }
    c.out<Variant>(0)[i] = Variant(std::shared_ptr<const VariantValue>(v));
  }
  return OkStatus();
}

Status ToVariantRule(ShapeContext& c) {
  c.set_output(0, Shape());
  for (int i = 0; i + 1 < c.num_inputs(); ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 1) {
      return InvalidArgument("Shape must be rank 1 but is rank ",
                             c.input(i).rank());
    }
  }
  if (!c.op().bool_attr("batched_input")) return OkStatus();
  const Shape& first = c.input(0);
  if (!first.known_rank() || first.rank() < 1) {
    c.set_output(0, Shape{-1});
    return OkStatus();
  }
  const bool ragged = c.num_inputs() > 1;
  c.set_output(0, Shape{first[0] < 0 ? -1 : first[0] - ragged});
  return OkStatus();
}

// Values of all parts, one behind another.
Status SetValues(KernelContext& c, int i,
                 absl::Span<const RaggedVariant* const> parts) {
  const DType dtype = c.op().output_types()[i];
  Shape row;
  int64_t rows = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    const Shape& s = parts[k]->values.shape();
    if (s.rank() < 1) {
      return InvalidArgument(
          "Ragged values must have rank >= 1; encoded scalar element at index ",
          k, " has values Tensor: ", parts[k]->values.Describe());
    }
    const Shape tail = s.Sub(1, s.rank());
    if (k > 0 && tail != row) {
      return InvalidArgument("ragged elements have values of shapes ", row,
                             " and ", tail);
    }
    row = tail;
    rows += s[0];
  }
  HR_RETURN_IF_ERROR(c.Allocate(i, Shape{rows}.Concat(row)));
  int64_t at = 0;
  for (const RaggedVariant* p : parts) {
    const int64_t n = p->values.dim(0);
    if (p->values.dtype() != dtype) {
      return InvalidArgument("Expected values Tensor dtype: ", DTypeName(dtype),
                             ", found: ", DTypeName(p->values.dtype()));
    }
    Tensor to = c.output(i).Rows(at, at + n);
    CopyElements(p->values, to);
    at += n;
  }
  return OkStatus();
}

StatusOr<std::vector<const RaggedVariant*>> Parts(const Tensor& t) {
  std::vector<const RaggedVariant*> parts;
  for (const Variant& v : t.span<Variant>()) {
    const auto* p = v.get<RaggedVariant>();
    if (p == nullptr) {
      return InvalidArgument(
          "Input Variant element does not hold a "
          "RaggedTensorVariant");
    }
    if (!parts.empty() && p->splits.size() != parts[0]->splits.size()) {
      return InvalidArgument("ragged elements have ragged ranks ",
                             parts[0]->splits.size(), " and ",
                             p->splits.size());
    }
    parts.push_back(p);
  }
  return parts;
}

Status FromVariant(KernelContext& c) {
  const Tensor& in = c.input(0);
  HR_ASSIGN_OR_RETURN(auto parts, Parts(in));
  const int64_t rank = c.op().int_attr("output_ragged_rank");
  const int64_t inner = parts.empty()
                            ? std::max<int64_t>(0, rank - in.rank())
                            : static_cast<int64_t>(parts[0]->splits.size());
  if (inner + in.rank() != rank) {
    return InvalidArgument(
        "output_ragged_rank must be equal to "
        "input_ragged_rank + encoded_ragged.dims(); got ",
        rank, ", ", inner, " and ", in.rank());
  }
  // The dimensions of the encoded tensor have one length each.
  int64_t rows = in.rank() > 0 ? in.dim(0) : 1;
  for (int d = 1; d < in.rank(); ++d) {
    std::vector<int64_t> even;
    for (int64_t k = 0; k <= rows; ++k) even.push_back(k * in.dim(d));
    HR_RETURN_IF_ERROR(SetSplits(c, d - 1, even));
    rows *= in.dim(d);
  }
  if (in.rank() > 0) {
    std::vector<int64_t> outer{0};
    for (const auto* p : parts) outer.push_back(outer.back() + p->rows());
    HR_RETURN_IF_ERROR(SetSplits(c, in.rank() - 1, outer));
  }
  for (int64_t level = 0; level < inner; ++level) {
    std::vector<int64_t> all{0};
    for (const auto* p : parts) {
      const int64_t base = all.back();
      for (size_t k = 1; k < p->splits[level].size(); ++k) {
        all.push_back(base + p->splits[level][k]);
      }
    }
    HR_RETURN_IF_ERROR(SetSplits(c, static_cast<int>(level + in.rank()), all));
  }
  const int last = c.num_outputs() - 1;
  if (in.rank() == 0) {
    if (parts[0]->values.dtype() != c.op().output_types()[last]) {
      return InvalidArgument("Expected values Tensor dtype: ",
                             DTypeName(c.op().output_types()[last]),
                             ", found: ", DTypeName(parts[0]->values.dtype()));
    }
    c.set_output(last, parts[0]->values);
    return OkStatus();
  }
  return SetValues(c, last, parts);
}

// Rows' gradients come as variants of the values alone.
Status ToVariantGradient(GradientContext& g) {
  const int last = g.num_inputs() - 1;
  if (!IsDifferentiable(g.input(last).dtype())) return OkStatus();
  Value splits = last > 0 ? g.input(0) : g.Const(Tensor::Scalar<int64_t>(0));
  g.set(last, g("RaggedTensorToVariantGradient",
                {g.grad(), splits, g.ShapeOf(g.input(last))},
                {{"Tvalues", g.input(last).dtype()}}));
  return g.status();
}

Status FromVariantGradient(GradientContext& g) {
  const int last = g.num_outputs() - 1;
  if (!IsDifferentiable(g.output(last).dtype())) return OkStatus();
  ValueList parts(g.outputs().begin(), g.outputs().end() - 1);
  parts.push_back(g.grad_or_zeros(last));
  const Shape& encoded = g.input(0).shape();
  const int64_t inner = g.op().int_attr("input_ragged_rank");
  if (!encoded.known_rank() && inner < 0) {
    return Unimplemented(
        "the gradient of RaggedTensorFromVariant where neither the rank of its "
        "input nor input_ragged_rank is known");
  }
  if (encoded.known_rank() && encoded.rank() > 1) {
    return InvalidArgument(
        "Unable to compute gradient: RaggedTensorToVariant can currently only "
        "generate 0D or 1D output.");
  }
  const bool batched = encoded.known_rank() ? encoded.rank() > 0 : last > inner;
  g.set(0, g("RaggedTensorToVariant", parts,
             {{"RAGGED_RANK", int64_t{last}},
              {"Tsplits", g.op().type_attr("Tsplits")},
              {"batched_input", batched}}));
  return g.status();
}

HR_OP(RaggedTensorToVariant)
    .Input("rt_nested_splits: RAGGED_RANK * Tsplits")
    .Input("rt_dense_values: Tvalues")
    .Output("encoded_ragged: variant")
    .Attr("RAGGED_RANK: int >= 0")
    .Attr("Tvalues: type")
    .Attr("Tsplits: {int32, int64} = DT_INT64")
    .Attr("batched_input: bool")
    .Doc("A ragged tensor as a variant, or its rows as a vector of them.")
    .Shape(ToVariantRule)
    .Gradient(ToVariantGradient)
    .Cpu(ComputeOwn<ToVariant>);

HR_OP(RaggedTensorFromVariant)
    .Input("encoded_ragged: variant")
    .Output("output_nested_splits: output_ragged_rank * Tsplits")
    .Output("output_dense_values: Tvalues")
    .Attr("input_ragged_rank: int >= -1")
    .Attr("output_ragged_rank: int >= 0")
    .Attr("Tvalues: type")
    .Attr("Tsplits: {int32, int64} = DT_INT64")
    .Doc("The ragged tensor that variants hold, stacked where several do.")
    .Shape(UnknownShape)
    .Gradient(FromVariantGradient)
    .Cpu(ComputeOwn<FromVariant>);

}  // namespace
}  // namespace headrace
