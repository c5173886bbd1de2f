#include "bind/value/argument_scope.h"

#include "bind/value/convert.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "op/emitter.h"

namespace headrace::bind {
namespace {

// The full name that the op's node is going to get.
std::string NodeName(GraphBuilder& builder, PyObject* name,
                     const std::string& op) {
  std::string base = op;
  if (name && name != Py_None) {
    const char* given = NameText(name);
    // A name that is no str is refused by the op's own call.
    if (given == nullptr) PyErr_Clear();
    if (given && *given) base = given;
  }
  // As upstream: no scope begins with an underscore ("_Send" is made under
  // "Send").
  if (base[0] == '_') base.erase(0, 1);
  // A name that ends with a slash is final: no scope, no number behind it.
  if (base.back() == '/') return base.substr(0, base.size() - 1);
  // Not taken: the op's own node gets this name later.
  return builder.graph()->UniqueName(builder.scope() + base, /*mark=*/false);
}

}  // namespace

ArgumentScope::ArgumentScope(PyObject* name, const std::string& op) {
  Emitter* emitter = CurrentEmitter();
  if (emitter->is_eager()) [[likely]]
    return;
  // Other emitters than graphs (a checking one, say) name no nodes.
  builder_ = dynamic_cast<GraphBuilder*>(emitter);
  if (builder_ == nullptr) return;
  outer_ = builder_->scope();
  builder_->set_scope(NodeName(*builder_, name, op) + "/");
}

ArgumentScope::~ArgumentScope() {
  if (builder_ == nullptr) return;
  // An argument that made no node must not name the op's.
  builder_->SetNextName("");
  builder_->set_scope(std::move(outer_));
}

void ArgumentScope::Argument(const std::string& name, PyObject* data) {
  if (builder_ == nullptr) return;
  const bool is_data = !IsTensor(data) && !IsVariable(data);
  builder_->SetNextName(is_data ? name : "");
}

}  // namespace headrace::bind
