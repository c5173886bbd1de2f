// Products of which only some columns are read are made of these alone: the
// gradient of a concatenation of which one part needs a gradient, say, as the
// cells of recurrent networks have it.
#include "op/registry.h"
#include "runtime/program.h"

namespace headrace {
namespace {

struct Columns {
  ValueId from = kNoValue;  // the matrix
  ValueId part = kNoValue;  // its columns
  int64_t first = 0, count = 0;
};

// What `call` reads of a matrix, if that is one block of columns. `uses`: of
// all values.
bool ReadsColumns(const Program& p, const Call& call,
                  const std::vector<int>& uses, Columns* to) {
  const OpDef& def = call.op->def();
  const bool slices = def.Is(OpRole::kSlice);
  if (call.effect || !(slices || def.Is(OpRole::kSplit))) return false;
  to->from = call.inputs[slices ? 0 : def.FindInput("value")];
  const Shape& shape = p.values[to->from].shape;
  if (!shape.fully_known() || shape.rank() != 2) return false;
  if (slices) {
    const Tensor& begin = p.values[call.inputs[1]].constant;
    const Shape& out = p.values[call.outputs[0]].shape;
    if (!begin.has_buffer() || begin.num_elements() != 2 ||
        !p.values[call.inputs[2]].constant.has_buffer() || !out.fully_known() ||
        out.rank() != 2 || out[0] != shape[0]) {
      return false;
    }
    to->part = call.outputs[0];
    to->first = begin.IntAt(1);
    to->count = out[1];
    return true;
  }
  const Tensor& axis =
      p.values[call.inputs[def.FindInput("split_dim")]].constant;
  if (!axis.has_buffer() || (axis.IntAt(0) != 1 && axis.IntAt(0) != -1)) {
    return false;
  }
  int64_t at = 0;
  for (ValueId v : call.outputs) {
    const Shape& part = p.values[v].shape;
    if (!part.fully_known() || part.rank() != 2) return false;
    if (uses[v] > 0) {
      // Two parts are read: two narrow products would read the left operand
      // twice.
      if (to->part != kNoValue) return false;
      to->part = v;
      to->first = at;
      to->count = part[1];
    }
    at += part[1];
  }
  return to->part != kNoValue;
}

}  // namespace

void NarrowProducts(Program& p) {
  std::vector<int> uses(p.values.size()), maker(p.values.size(), -1);
  for (size_t i = 0; i < p.calls.size(); ++i) {
    for (ValueId v : p.calls[i].inputs) ++uses[v];
    for (ValueId v : p.calls[i].outputs) maker[v] = static_cast<int>(i);
  }
  for (ValueId v : p.fetches) ++uses[v];
  for (Call& call : p.calls) {
    Columns read;
    if (!ReadsColumns(p, call, uses, &read)) continue;
    const int made = maker[read.from];
    // All other readers need the whole product.
    if (made < 0 || uses[read.from] != 1) continue;
    Call& product = p.calls[made];
    if (!product.op->def().Is(OpRole::kMatMul) || product.kernel ||
        product.op->attrs().Find("_headrace_columns")) {
      continue;
    }
    AttrMap attrs = product.op->attrs();
    attrs.Set("_headrace_columns",
              std::vector<int64_t>{read.first, read.count});
    auto narrow =
        ResolveOp(product.op->def(), product.op->input_types(), attrs);
    if (!narrow.ok()) continue;
    product.op = *std::move(narrow);
    product.outputs[0] = read.part;
    call.dead = true;
  }
  std::erase_if(p.calls, [](const Call& c) { return c.dead; });
}

}  // namespace headrace
