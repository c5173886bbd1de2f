#include "op/spelled_out.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace headrace {
namespace {

constinit thread_local const SpelledOut* current_spelling = nullptr;

// Along which axes each of two operands was repeated; false where sizes that
// are not known decide it.
bool FindRepeated(const Shape& a, const Shape& b, std::vector<int32_t>* of_a,
                  std::vector<int32_t>* of_b) {
  if (!a.known_rank() || !b.known_rank()) return false;
  const int rank = std::max(a.rank(), b.rank());
  for (int i = 0; i < rank; ++i) {
    const int at_a = i - (rank - a.rank()), at_b = i - (rank - b.rank());
    const int64_t in_a = at_a < 0 ? 1 : a[at_a];
    const int64_t in_b = at_b < 0 ? 1 : b[at_b];
    // (To none at all, too.)
    const auto repeats = [](int64_t from, int64_t to) {
      return from == 1 && (to > 1 || to == 0);
    };
    if (at_a < 0 || repeats(in_a, in_b)) of_a->push_back(i);
    if (at_b < 0 || repeats(in_b, in_a)) of_b->push_back(i);
    const bool unknown = in_a < 0 || in_b < 0;
    if (unknown && at_a >= 0 && at_b >= 0) return false;
  }
  return true;
}

// `name`, exact where it ends in a slash; "": none.
Value Ask(OpScope& s, const std::string& name, StringView op,
          absl::Span<const Value> inputs, const AttrMap& attrs) {
  if (!s.ok()) return Value();
  if (!name.empty()) CurrentEmitter()->SetNextName(name);
  Value made = s(op, inputs, attrs);
  // What is refused takes no name, and leaves none for the next.
  if (!s.ok()) CurrentEmitter()->SetNextName({});
  return made;
}

Value AskConst(OpScope& s, const std::string& name, Tensor t) {
  if (!s.ok()) return Value();
  if (!name.empty()) CurrentEmitter()->SetNextName(name);
  return s.Const(std::move(t));
}

}  // namespace

SpelledOut::SpelledOut(TakeScope take, Emitter* graph)
    : take_(take), graph_(graph), around_(current_spelling) {
  current_spelling = this;
}
SpelledOut::~SpelledOut() { current_spelling = around_; }
bool SpelledOut::Now() {
  return current_spelling && current_spelling->graph_ == CurrentEmitter();
}
std::string SpelledOut::Scope(StringView base) {
  return Now() ? current_spelling->take_(current_spelling->graph_, base)
               : std::string();
}

Value Named(OpScope& s, StringView name, StringView op,
            std::initializer_list<Operand> inputs, const AttrMap& attrs) {
  if (!s.ok()) return Value();
  // The slash keeps a name as it is: its scope is in it already.
  const std::string scope = SpelledOut::Scope(name);
  ValueList values;
  for (const Operand& i : inputs) {
    const std::string below =
        scope.empty() ? scope : absl::StrCat(scope, i.name, "/");
    values.push_back(i.name.empty() ? i.value
                     : i.op.empty() ? AskConst(s, below, i.constant)
                                    : Ask(s, below, i.op, i.inputs, {}));
  }
  return Ask(s, scope, op, values, attrs);
}

ValueList NamedAll(OpScope& s, StringView name, StringView op,
                   absl::Span<const Value> inputs, const AttrMap& attrs) {
  if (!s.ok()) return {};
  if (SpelledOut::Now()) CurrentEmitter()->SetNextName(SpelledOut::Scope(name));
  ValueList made = s.All(op, inputs, attrs);
  if (!s.ok()) CurrentEmitter()->SetNextName({});
  return made;
}

Value NamedOf(OpScope& s, StringView name, StringView op,
              absl::Span<const Value> inputs, const AttrMap& attrs) {
  ValueList made = NamedAll(s, name, op, inputs, attrs);
  return s.ok() ? made[0] : Value();
}

namespace {

// Upstream's tf.zeros makes one constant below this many elements.
constexpr int64_t kFilledFrom = 1000;

// "name" filled with a number in the shape of `x`, whose sizes lie below
// `shape_name`.
Value FilledLike(OpScope& s, StringView name, StringView shape_name,
                 const Value& x, int number) {
  const std::string scope = SpelledOut::Scope(name);
  const auto below = [&](StringView part) {
    return scope.empty() ? scope : absl::StrCat(scope, part, "/");
  };
  Value sizes;
  if (x.shape().fully_known()) {
    const auto dims = x.shape().dims();
    const bool narrow = std::all_of(dims.begin(), dims.end(), [](int64_t d) {
      return d <= std::numeric_limits<int32_t>::max();
    });
    const std::string at = shape_name.empty()
                               ? "shape_as_tensor"
                               : absl::StrCat(shape_name, "/shape_as_tensor");
    sizes = AskConst(s, below(at),
                     narrow ? Tensor::Vector<int32_t>(std::vector<int32_t>(
                                  dims.begin(), dims.end()))
                            : Tensor::Vector(x.shape()));
  } else {
    sizes = Ask(s, below(shape_name), "Shape", {x}, {});
  }
  StatusOr<Tensor> one = ScalarOf(x.dtype(), number);
  if (!one.ok()) {
    s.Fail(one.status());
    return Value();
  }
  Value all = AskConst(s, below("Const"), *std::move(one));
  return Ask(s, scope, "Fill", {sizes, all}, {});
}

}  // namespace

Value NamedZerosLike(OpScope& s, StringView name, const Value& x) {
  if (!s.ok()) return Value();
  const bool known = x.shape().fully_known() && IsPlain(x.dtype());
  if (!known) return Named(s, name, "ZerosLike", {x});
  if (x.shape().num_elements() >= kFilledFrom) {
    return FilledLike(s, name, "", x, 0);
  }
  StatusOr<Tensor> zeros = Tensor::Allocate(x.dtype(), x.shape());
  if (!zeros.ok()) {
    s.Fail(zeros.status());
    return Value();
  }
  FillZero(*zeros);
  return NamedConst(s, name, *std::move(zeros));
}

Value SpelledRankOf(OpScope& s, const Value& x) {
  if (!s.ok()) return Value();
  if (!x.shape().known_rank()) return s("Rank", {x});
  return NamedConst(s, "Rank", Tensor::Scalar<int32_t>(x.rank()));
}

Value NamedOnesLike(OpScope& s, StringView name, const Value& x) {
  if (!s.ok()) return Value();
  return FilledLike(s, name, "Shape", x, 1);
}

namespace {

// `v` summed along `axes`, which its operand was repeated along, and given the
// operand's shape.
Value SumFound(GradientContext& g, const Value& v, const Value& axes,
               const Value& shape) {
  return g("Reshape", {g("Sum", {v, axes}, {{"keep_dims", true}}), shape});
}
Value SumRepeated(GradientContext& g, const Value& v,
                  const std::vector<int32_t>& axes, const Value& shape) {
  if (axes.empty()) return v;
  Value sum = Named(g, "Sum", "Sum",
                    {v, {"reduction_indices", Tensor::Vector<int32_t>(axes)}},
                    {{"keep_dims", true}});
  return g("Reshape", {sum, shape});
}

}  // namespace

void SetSpelledBroadcast(GradientContext& g, const Value& ga, const Value& gb,
                         bool always) {
  if (!g.ok()) return;
  const Shape &a = g.input(0).shape(), &b = g.input(1).shape();
  if (!always && a.fully_known() && a == b) {
    g.set(0, ga);
    g.set(1, gb);
    return;
  }
  const Value shapes[] = {g.ShapeOf(g.input(0)), g.ShapeOf(g.input(1))};
  const Value grads[] = {ga, gb};
  std::vector<int32_t> axes[2];
  const bool known = FindRepeated(a, b, &axes[0], &axes[1]);
  ValueList found;
  if (!known) found = g.All("BroadcastGradientArgs", {shapes[0], shapes[1]});
  for (int i = 0; g.ok() && i < 2; ++i) {
    if (!grads[i]) continue;
    g.set(i, known ? SumRepeated(g, grads[i], axes[i], shapes[i])
                   : SumFound(g, grads[i], found[i], shapes[i]));
  }
}

Value SpelledReduceTo(GradientContext& g, const Value& v, const Value& like,
                      const Value& x) {
  if (!g.ok()) return Value();
  const Value to = g.ShapeOf(x), from = g.ShapeOf(like);
  std::vector<int32_t> of_x, of_like;
  if (FindRepeated(x.shape(), like.shape(), &of_x, &of_like)) {
    return SumRepeated(g, v, of_x, to);
  }
  const ValueList found = g.All("BroadcastGradientArgs", {to, from});
  return g.ok() ? SumFound(g, v, found[0], to) : Value();
}

Gradient SpelledRowSlices(GradientContext& g, const Value& shape,
                          const Value& indices) {
  Gradient rows;
  if (!g.ok()) return rows;
  const Shape& many = indices.shape();
  // The size of a shape that says more than 32 bits is left to the op.
  const bool known = many.fully_known() &&
                     many.num_elements() <= std::numeric_limits<int32_t>::max();
  Value size =
      known ? NamedConst(
                  g, "Size",
                  Tensor::Scalar(static_cast<int32_t>(many.num_elements())))
            : g("Size", {indices});
  Value count = Named(g, "ExpandDims", "ExpandDims",
                      {size, {"dim", Tensor::Scalar<int32_t>(0)}});
  Value row = Named(g, "strided_slice", "StridedSlice",
                    {shape,
                     {"stack", Tensor::Vector<int32_t>({1})},
                     {"stack_1", Tensor::Vector<int32_t>({0})},
                     {"stack_2", Tensor::Vector<int32_t>({1})}},
                    {{"end_mask", 1}});
  Value sizes = Named(g, "concat", "ConcatV2",
                      {count, row, {"axis", Tensor::Scalar<int32_t>(0)}});
  rows.values = g("Reshape", {g.grad(), sizes});
  rows.indices = g("Reshape", {indices, count});
  rows.dense_shape = shape;
  return rows;
}

void SetBroadcastAlways(GradientContext& g, const Value& ga, const Value& gb) {
  if (!SpelledOut::Now()) return g.SetBroadcast(ga, gb);
  SetSpelledBroadcast(g, ga, gb, /*always=*/true);
}

Value NamedConst(OpScope& s, StringView name, Tensor t) {
  return AskConst(s, SpelledOut::Now() ? std::string(name) : std::string(),
                  std::move(t));
}

}  // namespace headrace
