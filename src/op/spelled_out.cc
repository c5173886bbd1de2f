#include "op/spelled_out.h"

#include <algorithm>

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
    if (at_a < 0 || (in_a == 1 && in_b > 1)) of_a->push_back(i);
    if (at_b < 0 || (in_b == 1 && in_a > 1)) of_b->push_back(i);
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
    values.push_back(
        i.name.empty()
            ? i.value
            : AskConst(s,
                       scope.empty() ? scope : absl::StrCat(scope, i.name, "/"),
                       i.constant));
  }
  return Ask(s, scope, op, values, attrs);
}

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
    if (known && axes[i].empty()) {
      g.set(i, grads[i]);
      continue;
    }
    Value sum =
        known ? Named(g, "Sum", "Sum",
                      {grads[i],
                       {"reduction_indices", Tensor::Vector<int32_t>(axes[i])}})
              : g("Sum", {grads[i], found[i]});
    g.set(i, g("Reshape", {sum, shapes[i]}));
  }
}

Value NamedConst(OpScope& s, StringView name, Tensor t) {
  return AskConst(s, SpelledOut::Now() ? std::string(name) : std::string(),
                  std::move(t));
}

}  // namespace headrace
