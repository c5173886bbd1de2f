#include "runtime/column_parts.h"

#include "op/passes/joins.h"

namespace headrace {
namespace {

// The outputs of a split of the last dimension.
void AddSplit(const Program& p, const Call& call,
              std::vector<ColumnPart>* parts) {
  const OpDef& def = call.op->def();
  const ValueId whole = call.inputs[def.FindInput("value")];
  const Shape& shape = p.values[whole].shape;
  const Tensor& axis =
      p.values[call.inputs[def.FindInput("split_dim")]].constant;
  if (!axis.has_buffer() || axis.num_elements() != 1) return;
  if (axis.IntAt(0) != -1 && axis.IntAt(0) != shape.rank() - 1) return;
  for (ValueId v : call.outputs) {
    if (!p.values[v].shape.fully_known()) return;
  }
  int64_t at = 0;
  for (ValueId v : call.outputs) {
    (*parts)[v] = {whole, at, shape[shape.rank() - 1]};
    at += p.values[v].shape[shape.rank() - 1];
  }
}

// A slice of whole rows but for the last dimension.
void AddSlice(const Program& p, const Call& call,
              std::vector<ColumnPart>* parts) {
  const ValueId whole = call.inputs[0], part = call.outputs[0];
  const Shape &shape = p.values[whole].shape, &out = p.values[part].shape;
  const Tensor& begin = p.values[call.inputs[1]].constant;
  const int last = shape.rank() - 1;
  if (!begin.has_buffer() || begin.num_elements() != shape.rank() ||
      !p.values[call.inputs[2]].constant.has_buffer() || !out.fully_known() ||
      out.rank() != shape.rank()) {
    return;
  }
  for (int d = 0; d < last; ++d) {
    if (out[d] != shape[d]) return;
  }
  (*parts)[part] = {whole, begin.IntAt(last), shape[last]};
}

}  // namespace

std::vector<ColumnPart> ColumnParts(const Program& p) {
  std::vector<ColumnPart> parts(p.values.size());
  for (const Call& call : p.calls) {
    const OpDef& def = call.op->def();
    const bool slices = def.Is(OpRole::kSlice);
    if (call.effect || !(slices || def.Is(OpRole::kSplit))) continue;
    const ValueId whole = call.inputs[slices ? 0 : def.FindInput("value")];
    const Shape& shape = p.values[whole].shape;
    if (!shape.fully_known() || shape.rank() < 1 ||
        !IsPlain(p.values[whole].dtype)) {
      continue;
    }
    if (slices) {
      AddSlice(p, call, &parts);
    } else {
      AddSplit(p, call, &parts);
    }
  }
  return parts;
}

std::vector<ValueId> JoinedColumns(const Program& p, const Call& call) {
  const OpDef& def = call.op->def();
  if (call.effect || !def.Has(kJoins)) return {};
  const Tensor& axis = p.values[call.inputs.back()].constant;
  const Shape& all = p.values[call.outputs[0]].shape;
  const int last = all.rank() - 1;
  if (!axis.has_buffer() || axis.num_elements() != 1 || !all.fully_known() ||
      last < 0 || (axis.IntAt(0) != -1 && axis.IntAt(0) != last) ||
      !IsPlain(p.values[call.outputs[0]].dtype)) {
    return {};
  }
  std::vector<ValueId> joined(call.inputs.begin(), call.inputs.end() - 1);
  for (ValueId v : joined) {
    const Shape& shape = p.values[v].shape;
    if (!shape.fully_known() || shape != p.values[joined[0]].shape) return {};
  }
  return joined;
}

}  // namespace headrace
