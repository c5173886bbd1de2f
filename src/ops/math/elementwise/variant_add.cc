#include "ops/math/elementwise/variant_add.h"

#include <map>

namespace headrace {
namespace {

std::map<std::string, VariantAddFn>& Table() {
  static auto* table = new std::map<std::string, VariantAddFn>;
  return *table;
}

}  // namespace

bool RegisterVariantAdd(const char* type, VariantAddFn fn) {
  return Table().emplace(type, fn).second;
}

StatusOr<Variant> AddVariantValues(const Variant& a, const Variant& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  const StringView type = a.value()->type_name();
  if (type != b.value()->type_name()) {
    return InvalidArgument("cannot add a variant of type ", type,
                           " and one of type ", b.value()->type_name());
  }
  auto it = Table().find(std::string(type));
  if (it == Table().end()) {
    return Unimplemented("variants of type ", type, " cannot be added");
  }
  return it->second(a, b);
}

}  // namespace headrace
