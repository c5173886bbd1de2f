#include "op/float_ops.h"

#include <algorithm>

#include "base/hash_map.h"

namespace headrace {

double FloatOpsContext::Dim(absl::Span<const Shape* const> shapes, int i,
                            int d) {
  const bool there =
      i < static_cast<int>(shapes.size()) && shapes[i]->known_rank();
  const int rank = there ? shapes[i]->rank() : 0;
  const int at = d < 0 ? d + rank : d;
  if (at < 0 || at >= rank || (*shapes[i])[at] < 0) {
    known_ = false;
    return 0;
  }
  return static_cast<double>((*shapes[i])[at]);
}

double FloatOpsContext::Product(StringView ints_attr) const {
  double product = 1;
  for (int64_t v : op_.attr<std::vector<int64_t>>(ints_attr)) {
    product *= static_cast<double>(v);
  }
  return product;
}

double FloatOpsContext::Elements(absl::Span<const Shape* const> shapes, int i) {
  if (i >= static_cast<int>(shapes.size()) || !shapes[i]->fully_known()) {
    known_ = false;
    return 0;
  }
  double n = 1;
  for (int d = 0; d < shapes[i]->rank(); ++d) {
    n *= static_cast<double>((*shapes[i])[d]);
  }
  return n;
}

static HashMap<StringView, FloatOpsFn>& Rules() {
  static auto* const rules = new HashMap<StringView, FloatOpsFn>();
  return *rules;
}

FloatOps::FloatOps(std::initializer_list<const char*> ops, FloatOpsFn rule) {
  for (const char* op : ops) Rules().emplace(op, rule);
}

FloatOpsFn FloatOpsRule(const OpDef& op) {
  const auto it = Rules().find(op.name);
  return it == Rules().end() ? nullptr : it->second;
}

double FloatOpsOfReduction(FloatOpsContext& c) {
  return c.input(0) - c.output();
}

std::optional<int64_t> CountFloatOps(const ResolvedOp& op,
                                     absl::Span<const Shape* const> inputs,
                                     absl::Span<const Shape* const> outputs) {
  const FloatOpsFn rule = FloatOpsRule(op.def());
  if (rule == nullptr) return std::nullopt;
  FloatOpsContext c(op, inputs, outputs);
  const double count = rule(c);
  // Not a number: a quotient of sizes that are 0.
  if (!c.known() || count != count) return kUnknownFloatOps;
  constexpr double kMost = 9.2e18;  // below 2^63
  return static_cast<int64_t>(std::clamp(count, 0.0, kMost));
}

}  // namespace headrace
