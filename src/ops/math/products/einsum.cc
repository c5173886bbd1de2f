// Einsum: contraction of one or two tensors by an equation.
#include <algorithm>
#include <map>

#include "op/op.h"
#include "ops/math/products/einsum_kernel.h"

namespace headrace {
namespace {

// The equation on inputs of known shapes.
struct Problem {
  EinsumEquation equation;
  std::vector<Labels> inputs;
  Labels output;
  Shape shape;  // of the output
};

// The size of each label; ellipsis dimensions broadcast.
Status AddSizes(const Labels& labels, const Shape& s,
                std::map<int, int64_t>& sizes) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t dim = s[static_cast<int>(i)];
    auto [at, is_new] = sizes.emplace(labels[i], dim);
    if (is_new || at->second == dim || dim < 0) continue;
    if (at->second < 0) {
      at->second = dim;
    } else if (labels[i] >= kEllipsis && (dim == 1 || at->second == 1)) {
      at->second = std::max(dim, at->second);
    } else {
      return InvalidArgument("Expected dimension ", at->second, " at axis ", i,
                             " of the input shaped ", s, " but got dimension ",
                             dim);
    }
  }
  return OkStatus();
}

// The equation, for that many inputs.
StatusOr<EinsumEquation> EquationFor(StringView text, size_t inputs) {
  HR_ASSIGN_OR_RETURN(EinsumEquation e, EinsumEquation::Parse(text));
  if (e.inputs.size() != inputs) {
    return InvalidArgument("Expected ", e.inputs.size(),
                           " inputs but got: ", inputs);
  }
  return e;
}

StatusOr<Problem> Solve(StringView text,
                        absl::Span<const Shape* const> shapes) {
  Problem p;
  HR_ASSIGN_OR_RETURN(p.equation, EquationFor(text, shapes.size()));
  std::map<int, int64_t> sizes;
  int ellipsis = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    HR_ASSIGN_OR_RETURN(
        Labels labels,
        LabelsOf(p.equation.inputs[i], shapes[i]->rank(), static_cast<int>(i)));
    HR_RETURN_IF_ERROR(AddSizes(labels, *shapes[i], sizes));
    for (int l : labels) ellipsis = std::max(ellipsis, l - kEllipsis + 1);
    p.inputs.push_back(std::move(labels));
  }
  if (ellipsis > 0 && p.equation.output.find('.') == std::string::npos) {
    return InvalidArgument("Output contains ", ellipsis,
                           " broadcasting dimension(s) but no ellipsis (...) "
                           "was found in the output subscripts.");
  }
  p.output = OutputLabels(p.equation.output, ellipsis);
  for (int l : p.output) p.shape.AddDim(sizes.at(l));
  return p;
}

Status EinsumShape(ShapeContext& c) {
  const std::string& equation = c.op().string_attr("equation");
  absl::InlinedVector<const Shape*, 2> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).known_rank()) {
      return EquationFor(equation, c.num_inputs()).status();
    }
    shapes.push_back(&c.input(i));
  }
  HR_ASSIGN_OR_RETURN(Problem p, Solve(equation, shapes));
  c.set_output(0, std::move(p.shape));
  return OkStatus();
}

Status RunEinsum(KernelContext& c) {
  absl::InlinedVector<const Shape*, 2> shapes;
  absl::InlinedVector<const Tensor*, 2> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    shapes.push_back(&c.input(i).shape());
    inputs.push_back(&c.input(i));
  }
  HR_ASSIGN_OR_RETURN(Problem p, Solve(c.op().string_attr("equation"), shapes));
  return Contract(inputs, p.inputs, p.output, c.output(0));
}

// `subscripts` without repetitions and without what is not in `present`.
std::string Only(StringView subscripts, StringView present) {
  std::string out;
  for (char c : subscripts) {
    if (present.find(c) != StringView::npos &&
        out.find(c) == std::string::npos) {
      out += c;
    }
  }
  return out;
}

std::string Unique(StringView s) { return Only(s, s); }

// The gradient of input `i`: the output's gradient contracted with the other
// input, then stretched over labels that were summed here alone, then laid on
// the diagonal of repeated labels.
Value InputGradient(GradientContext& g, const EinsumEquation& e, int i,
                    const Value& d) {
  const std::string& own = e.inputs[i];
  std::string others = e.output;
  if (e.inputs.size() == 2) others += e.inputs[1 - i];
  // An ellipsis of the output is the gradient's, whoever it came from.
  const std::string left = Only(own, others), all = Unique(own);
  auto text = [](const std::string& s) { return EinsumEquation::Text(s); };
  Value v;
  if (e.inputs.size() == 2) {
    Value other = g.input(1 - i);
    if (IsComplex(other.dtype())) other = g("Conj", {other});
    std::string wide = left;
    // Broadcast dimensions are kept here and summed below.
    if (e.output.find('.') != std::string::npos &&
        left.find('.') == std::string::npos) {
      wide = "." + left;
    }
    v = g("Einsum", {d, other},
          {{"equation",
            text(e.output) + "," + text(e.inputs[1 - i]) + "->" + text(wide)},
           {"N", 2}});
    if (left == all && all == own) return g.ReduceTo(v, g.input(i));
  } else {
    v = g("Einsum", {d},
          {{"equation", text(e.output) + "->" + text(left)}, {"N", 1}});
  }
  if (left != all) {
    // Where the missing labels stand, dimensions of 1 that broadcast.
    Value x = g.input(i);
    Value small = x;
    if (all != own) {
      small = g("Einsum", {x},
                {{"equation", text(own) + "->" + text(all)}, {"N", 1}});
    }
    for (size_t p = 0; p < all.size(); ++p) {
      if (left.find(all[p]) != std::string::npos) continue;
      const size_t dots = all.find('.');
      const bool from_end = dots != std::string::npos && dots < p;
      const int axis = from_end
                           ? static_cast<int>(p) - static_cast<int>(all.size())
                           : static_cast<int>(p);
      v = g("ExpandDims", {v, g.Int32(axis)});
    }
    v = g("BroadcastTo", {v, g.ShapeOf(small)});
  }
  if (all != own) {
    v = g("Einsum", {v},
          {{"equation", text(all) + "->" + text(own)}, {"N", 1}});
  }
  return g.ReduceTo(v, g.input(i));
}

Status EinsumGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  HR_ASSIGN_OR_RETURN(
      EinsumEquation e,
      EquationFor(g.op().string_attr("equation"), g.inputs().size()));
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (g.wants(i)) g.set(i, InputGradient(g, e, i, d));
  }
  return g.status();
}

HR_OP(Einsum)
    .Input("inputs: N * T")
    .Output("output: T")
    .Attr("equation: string")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Doc("Contracts one or two tensors as an equation of labels says.")
    .Shape(EinsumShape)
    .Gradient(EinsumGradient)
    .GradientSkips({}, {0})
    .Cpu(Compute<RunEinsum>);

}  // namespace
}  // namespace headrace
