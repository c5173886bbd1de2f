// Einsum: contraction of one or two tensors by an equation.
#include <algorithm>
#include <map>

#include "op/op.h"
#include "op/vectorize.h"
#include "ops/math/products/einsum_kernel.h"
#include "ops/math/products/gemm.h"

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
    // Unknown sizes fit anything.
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
    // Labels from kEllipsis on are the dimensions of "...", counted from the
    // last.
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
    // Even without ranks the text itself can be wrong.
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
  // Again with the real shapes: the plan may not have known them.
  HR_ASSIGN_OR_RETURN(Problem p, Solve(c.op().string_attr("equation"), shapes));
  return Contract(inputs, p.inputs, p.output, c.output(0));
}

class EinsumKernel : public Kernel, public KnowsWork {
 public:
  explicit EinsumKernel(const ResolvedOp& op)
      : equation_(op.string_attr("equation")), dtype_(op.type_attr("T")) {}
  Status Run(KernelContext& c) override { return RunEinsum(c); }
  // That of its product: labels of both inputs and the result are a batch,
  // those that are not in the result are summed over, the others are rows or
  // columns.
  CallWork WorkOf(absl::Span<const Shape* const> in,
                  absl::Span<const Shape* const> out) const override {
    const StatusOr<Problem> p = Solve(equation_, in);
    const double elements = static_cast<double>(out[0]->num_elements());
    if (!p.ok() || in.size() != 2 || elements == 0) return {elements, 1};
    auto has = [](const Labels& labels, int l) {
      return std::find(labels.begin(), labels.end(), l) != labels.end();
    };
    int64_t batch = 1, m = 1, n = 1, k = 1;
    for (size_t i = 0; i < p->output.size(); ++i) {
      const int l = p->output[i];
      const bool rows = has(p->inputs[0], l), columns = has(p->inputs[1], l);
      (rows && columns ? batch : rows ? m : n) *= p->shape[static_cast<int>(i)];
    }
    for (size_t i = 0; i < p->inputs[0].size(); ++i) {
      const int l = p->inputs[0][i];
      if (has(p->output, l) || !has(p->inputs[1], l)) continue;
      k *= (*in[0])[static_cast<int>(i)];
    }
    return GemmWork(dtype_, m, n, k, batch);
  }

 private:
  const std::string equation_;
  const DType dtype_;
};

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

Value Unary(GradientContext& g, const Value& v, const std::string& from,
            const std::string& to) {
  if (from == to) return v;
  const auto text = EinsumEquation::Text;
  return g("Einsum", {v},
           {{"equation", text(from) + "->" + text(to)}, {"N", 1}});
}

// The output's gradient contracted with the other input, laid out as `left`,
// some of input i's labels. What an ellipsis broadcast is summed: with the
// ellipsis in front, as broadcasting aligns sizes at their ends.
Value Contracted(GradientContext& g, const EinsumEquation& e, int i,
                 const Value& d, const std::string& left) {
  if (e.inputs.size() == 1) return Unary(g, d, e.output, left);
  Value other = g.input(1 - i);
  if (IsComplex(other.dtype())) other = g("Conj", {other});
  const bool broadcast = e.output.find('.') != std::string::npos;
  std::string wide = left;
  if (broadcast) {
    wide.erase(std::remove(wide.begin(), wide.end(), '.'), wide.end());
    wide.insert(0, 1, '.');
  }
  const auto text = EinsumEquation::Text;
  Value v = g("Einsum", {d, other},
              {{"equation", text(e.output) + "," + text(e.inputs[1 - i]) +
                                "->" + text(wide)},
               {"N", 2}});
  if (!broadcast) return v;
  const std::string& like = left.find('.') == std::string::npos ? left : wide;
  v = g.ReduceTo(v, Unary(g, g.input(i), e.inputs[i], like));
  return Unary(g, v, like, left);
}

// The gradient of input `i`: the output's gradient contracted with the other
// input, then stretched over labels that were summed here alone, then laid on
// the diagonal of repeated labels.
Value InputGradient(GradientContext& g, const EinsumEquation& e, int i,
                    const Value& d) {
  const std::string& own = e.inputs[i];
  std::string others = e.output;
  if (e.inputs.size() == 2) others += e.inputs[1 - i];
  const std::string left = Only(own, others), all = Unique(own);
  Value v = Contracted(g, e, i, d, left);
  if (left != all) {
    // Where the missing labels stand, dimensions of 1 that broadcast.
    const Value small = Unary(g, g.input(i), own, all);
    for (size_t p = 0; p < all.size(); ++p) {
      if (left.find(all[p]) != std::string::npos) continue;
      const size_t dots = all.find('.');
      // Axes behind an ellipsis are counted from the end, as its rank may be
      // unknown.
      const bool from_end = dots != std::string::npos && dots < p;
      const int axis = from_end
                           ? static_cast<int>(p) - static_cast<int>(all.size())
                           : static_cast<int>(p);
      v = g("ExpandDims", {v, g.Int32(axis)});
    }
    v = g("BroadcastTo", {v, g.ShapeOf(small)});
  }
  // The diagonal of repeated labels: Einsum's own form "i->ii".
  return Unary(g, v, all, own);
}

Status EinsumGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  HR_ASSIGN_OR_RETURN(
      EinsumEquation e,
      EquationFor(g.op().string_attr("equation"), g.inputs().size()));
  if (e.output.find('.') == std::string::npos) {
    // An ellipsis that is not in the output stands for no dimensions.
    for (std::string& s : e.inputs) {
      s.erase(std::remove(s.begin(), s.end(), '.'), s.end());
    }
  }
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (g.wants(i)) g.set(i, InputGradient(g, e, i, d));
  }
  return g.status();
}

// A letter that the equation has not names the rows.
Status VectorizeEinsum(VectorizeContext& c) {
  const std::string& equation = c.op().string_attr("equation");
  char row = 0;
  for (char letter = 'a'; letter <= 'z' && !row; ++letter) {
    if (equation.find(letter) == std::string::npos) row = letter;
  }
  for (char letter = 'A'; letter <= 'Z' && !row; ++letter) {
    if (equation.find(letter) == std::string::npos) row = letter;
  }
  const size_t arrow = equation.find("->");
  if (!row || arrow == std::string::npos) {
    return c.Refuse("its equation has no room for a letter.");
  }
  std::string all;
  std::vector<Value> inputs;
  size_t begin = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    size_t end = std::min(equation.find(',', begin), arrow);
    if (i > 0) all += ',';
    if (c.stacked(i)) all += row;
    all += equation.substr(begin, end - begin);
    begin = end + 1;
    inputs.push_back(c.input(i));
  }
  all += "->";
  all += row;
  all += equation.substr(arrow + 2);
  return c.SetAll(c.AgainWith(inputs, {{"equation", all}}));
}

HR_OP(Einsum)
    .Input("inputs: N * T")
    .Output("output: T")
    .Attr("equation: string")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Doc("Contracts one or two tensors as an equation of labels says.")
    .Traits({OpTrait::kHeavy})
    .Shape(EinsumShape)
    .Gradient(EinsumGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeEinsum)
    .Cpu(Bind<EinsumKernel>);

}  // namespace
}  // namespace headrace
