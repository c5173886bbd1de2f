#include "runtime/plan_op.h"

namespace headrace {

OpDef* NewPlanOp(const char* name) {
  auto* op = new OpDef;
  op->name = name;
  for (const char* types : {"Tin", "Tout"}) {
    AttrDef attr;
    attr.name = types;
    attr.kind = AttrKind::kTypeList;
    op->attrs.push_back(std::move(attr));
  }
  ArgDef in, out;
  in.name = "inputs";
  in.type_list_attr = "Tin";
  out.name = "outputs";
  out.type_list_attr = "Tout";
  op->inputs.push_back(std::move(in));
  op->outputs.push_back(std::move(out));
  return op;
}

}  // namespace headrace
