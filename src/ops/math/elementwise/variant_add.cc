#include "ops/math/elementwise/variant_add.h"

#include <map>

#include "base/stack_room.h"
#include "ops/math/elementwise/elementwise.h"
#include "ops/math/loops/loops.h"

namespace headrace {
namespace {

std::map<std::string, VariantAddFn>& Table() {
  // Never destroyed: variants may be added while the process ends.
  static auto* table = new std::map<std::string, VariantAddFn>;
  return *table;
}

}  // namespace

bool RegisterVariantAdd(const char* type, VariantAddFn fn) {
  return Table().emplace(type, fn).second;
}

StatusOr<Variant> AddVariantValues(Variant a, const Variant& b) {
  // An empty variant stands for zero.
  if (a.empty()) return b;
  if (b.empty()) return a;
  // Variants hold variants (lists of lists), as deep as a program nests them.
  HR_RETURN_IF_ERROR(CheckStackRoom("a variant to be added"));
  const StringView type = a.value()->type_name();
  if (type != b.value()->type_name()) {
    return InvalidArgument("cannot add a variant of type ", type,
                           " and one of type ", b.value()->type_name());
  }
  auto it = Table().find(std::string(type));
  if (it == Table().end()) {
    return Unimplemented("variants of type ", type, " cannot be added");
  }
  return it->second(std::move(a), b);
}

StatusOr<Tensor> AddTensors(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) {
    return InvalidArgument("Cannot add tensors with different shapes. Left: ",
                           a.shape(), " Right: ", b.shape());
  }
  const LoopEntry* add = FindBinaryLoop("AddV2", static_cast<int>(a.dtype()));
  if (add == nullptr) {
    return InvalidArgument("Trying to add unsupported dtype ",
                           DTypeName(a.dtype()));
  }
  HR_ASSIGN_OR_RETURN(Tensor sum, Tensor::Allocate(a.dtype(), a.shape()));
  ComputeBinary(add->binary, add->ns, a, b, sum);
  return sum;
}

}  // namespace headrace
