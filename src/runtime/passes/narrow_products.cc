// Products of which only some columns are read are made of these alone: the
// gradient of a concatenation of which one part needs a gradient, say, as the
// cells of recurrent networks have it.
#include "op/registry.h"
#include "runtime/column_parts.h"
#include "runtime/program.h"

namespace headrace {
namespace {

// The part of a matrix that `call` reads, if it is one block of its columns;
// kNoValue else. `uses`: of all values.
ValueId PartRead(const Program& p, const Call& call,
                 const std::vector<ColumnPart>& parts,
                 const std::vector<int>& uses) {
  ValueId read = kNoValue;
  for (ValueId v : call.outputs) {
    if (parts[v].whole == kNoValue || uses[v] == 0) continue;
    // Two parts are read: two narrow products would read the left operand
    // twice.
    if (read != kNoValue) return kNoValue;
    read = v;
  }
  const bool matrix =
      read != kNoValue && p.values[parts[read].whole].shape.rank() == 2;
  return matrix ? read : kNoValue;
}

}  // namespace

void NarrowProducts(Program& p) {
  std::vector<int> uses(p.values.size()), maker(p.values.size(), -1);
  for (size_t i = 0; i < p.calls.size(); ++i) {
    for (ValueId v : p.calls[i].inputs) ++uses[v];
    for (ValueId v : p.calls[i].outputs) maker[v] = static_cast<int>(i);
  }
  for (ValueId v : p.fetches) ++uses[v];
  const std::vector<ColumnPart> parts = ColumnParts(p);
  for (Call& call : p.calls) {
    const ValueId read = PartRead(p, call, parts, uses);
    if (read == kNoValue) continue;
    const ColumnPart& part = parts[read];
    const int made = maker[part.whole];
    // All other readers need the whole product.
    if (made < 0 || uses[part.whole] != 1) continue;
    Call& product = p.calls[made];
    if (!product.op->def().Is(OpRole::kMatMul) || product.kernel ||
        product.op->attrs().Find("_headrace_columns")) {
      continue;
    }
    AttrMap attrs = product.op->attrs();
    attrs.Set("_headrace_columns",
              std::vector<int64_t>{part.first, p.values[read].shape[1]});
    auto narrow =
        ResolveOp(product.op->def(), product.op->input_types(), attrs);
    if (!narrow.ok()) continue;
    product.op = *std::move(narrow);
    product.outputs[0] = read;
    call.dead = true;
  }
  std::erase_if(p.calls, [](const Call& c) { return c.dead; });
}

}  // namespace headrace
