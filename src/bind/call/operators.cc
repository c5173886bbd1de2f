#include "bind/call/operators.h"

#include "bind/call/dispatched.h"
#include "bind/call/op_call.h"
#include "bind/python/graph_stack.h"
#include "bind/python/status.h"
#include "bind/value/argument_scope.h"
#include "bind/value/convert.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "graph/graph.h"

namespace headrace::bind {
namespace {

// More attributes than any op has that an operator of Python stands for.
constexpr int kMostAttrs = 8;
bool tensor_equality = true;

// Callers of binary ops, found once each.
PyObject* CallBinary(OpCaller*& caller, const char* op, PyObject* x,
                     PyObject* y, PyObject* name = Py_None) {
  if (caller == nullptr) [[unlikely]] {
    caller = CallerOf(op);
    if (caller == nullptr) return nullptr;
  }
  PyObject* inputs[] = {x, y};
  PyObject* attrs[kMostAttrs] = {};
  return (*caller)(inputs, attrs, name);
}

bool KnownOperand(PyObject* o) { return IsTensor(o) || IsVariable(o); }

DType DTypeOfOperand(PyObject* o) {
  if (IsTensor(o)) return ValueOf(o).dtype();
  const Value& handle = HandleOf(o);
  const HandleData* data = handle ? handle.handle_data() : nullptr;
  // A resource knows the dtype of what it holds by its handle data.
  return data && !data->empty() ? (*data)[0].dtype : DType::kInvalid;
}

// The other operand's type gets its turn where it is foreign and knows the
// operator too; `ours` names the failure that made us give up.
PyObject* TryOther(PyObject* other, const char* reflected) {
  // Only where the conversion failed: errors of the operation itself stand.
  if (!PyErr_ExceptionMatches(PyExc_TypeError) &&
      !PyErr_ExceptionMatches(PyExc_ValueError)) {
    return nullptr;
  }
  // Python's own types have reflected methods, too, which know nothing of
  // tensors: their NotImplemented would hide our message.
  if (PyFloat_Check(other) || PyLong_Check(other) || IsSequence(other) ||
      PyUnicode_Check(other) || PyComplex_Check(other)) {
    return nullptr;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Ref method(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(other)),
                                    reflected));
  if (!method) {
    // The other type does not know the operator: the first failure is what the
    // user is told.
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  Py_RETURN_NOTIMPLEMENTED;
}

// Converts the foreign operand: on the right the tensor's dtype is a hint, on
// the left a demand, as upstream has it. `raw`: what is on the right stays as
// it is, for the op to convert.
[[gnu::hot]] bool Operands(PyObject* x, PyObject* y, PyObject* name, Ref* left,
                           Ref* right, bool raw = false) {
  Value v;
  ArgumentScope names(name, "op");
  // Messages of the conversion name the argument that is no tensor.
  names.Argument(KnownOperand(x) ? "y" : "x", KnownOperand(x) ? y : x);
  if (KnownOperand(x)) {
    *left = Ref::Borrow(x);
    if (KnownOperand(y) || raw) {
      *right = Ref::Borrow(y);
      return true;
    }
    if (!ToValue(y, {DType::kInvalid, DTypeOfOperand(x)}, &v)) return false;
    *right = Ref(WrapValue(std::move(v)));
    return static_cast<bool>(*right);
  }
  // Required, not hinted: in 2.5 * int_tensor the tensor's dtype stands and 2.5
  // is refused.
  if (!ToValue(x, {DTypeOfOperand(y), DType::kInvalid}, &v)) return false;
  *left = Ref(WrapValue(std::move(v)));
  *right = Ref::Borrow(y);
  return static_cast<bool>(*left);
}

struct Operator {
  const char* op;
  const char* name;       // in graphs
  const char* reflected;  // "__radd__"
  const char* function;   // "math.add": what dispatchers are asked for
  bool hints = false;     // x's dtype is but a hint for y
  OpCaller* caller = nullptr;
  PyObject* name_object = nullptr;
};

// The node's name while tracing; eager ops have none.
PyObject* NameOf(Operator& o) {
  if (CurrentEmitter()->is_eager()) [[likely]]
    return Py_None;
  if (o.name_object == nullptr) {
    o.name_object = PyUnicode_InternFromString(o.name);
  }
  return o.name_object;
}

[[gnu::hot]] PyObject* Binary(Operator& o, PyObject* x, PyObject* y) {
  PyObject* name = NameOf(o);
  // Two tensors need neither conversion nor dispatch.
  if (IsTensor(x) && IsTensor(y)) [[likely]] {
    return CallBinary(o.caller, o.op, x, y, name);
  }
  PyObject* answer;
  if (DispatchOperator(o.function, x, y, &answer)) return answer;
  Ref left, right;
  if (!Operands(x, y, name, &left, &right, !o.hints)) {
    return TryOther(KnownOperand(x) ? y : x, o.reflected);
  }
  PyObject* z = CallBinary(o.caller, o.op, left.get(), right.get(), name);
  // Only an operand that the op itself converted can be what made it fail.
  if (z != nullptr || KnownOperand(y) || o.hints) return z;
  return TryOther(y, o.reflected);
}

bool IsBool(PyObject* o) {
  return IsTensor(o) && ValueOf(o).dtype() == DType::kBool;
}

// Operators with rules of their own are Python functions of headrace.ops.math.
PyObject* CallPython(PyObject*& kept, const char* function, PyObject* x,
                     PyObject* y, const char* reflected, const char* asked) {
  PyObject* answer;
  if (DispatchOperator(asked, x, y, &answer)) return answer;
  Ref name(PyUnicode_InternFromString(function));
  if (kept == nullptr) {
    kept = Import("ops.math_ops", function).release();
    if (kept == nullptr) return nullptr;
  }
  Ref left, right;
  if (!Operands(x, y, name.get(), &left, &right)) {
    return TryOther(KnownOperand(x) ? y : x, reflected);
  }
  return Called<PyObject_CallFunctionObjArgs>(kept, left.get(), right.get(),
                                              nullptr);
}

PyObject* Bitwise(Operator& logical, Operator& bitwise, PyObject* x,
                  PyObject* y) {
  PyObject* answer;
  if (DispatchOperator(logical.function, x, y, &answer)) return answer;
  Ref left, right;
  if (!Operands(x, y, NameOf(bitwise), &left, &right, /*raw=*/true)) {
    return TryOther(KnownOperand(x) ? y : x, bitwise.reflected);
  }
  bool is_bool =
      IsBool(left.get()) || (!IsTensor(left.get()) && IsBool(right.get()));
  // A tensor on the left decides; anything else there takes the right one's
  // dtype.
  return Binary(is_bool ? logical : bitwise, left.get(), right.get());
}

PyObject* Unary(const char* op, PyObject* x) {
  OpCaller* caller = CallerOf(op);
  if (caller == nullptr) return nullptr;
  PyObject* inputs[] = {x};
  PyObject* attrs[kMostAttrs] = {};
  return (*caller)(inputs, attrs, Py_None);
}

PyObject* Equality(PyObject* x, PyObject* y, bool equal) {
  // Graphs of sessions need == as dictionaries do: feeds are keyed by tensors.
  if (ComparesByIdentity(x)) {
    bool same = IsTensor(y) && ValueOf(x).id() == ValueOf(y).id();
    return PyBool_FromLong(same == equal);
  }
  PyObject* answer;
  if (DispatchOperator(equal ? "math.equal" : "math.not_equal", x, y,
                       &answer)) {
    return answer;
  }
  static PyObject* functions[2] = {};
  PyObject*& f = functions[equal];
  if (f == nullptr) {
    f = Import("ops.math_ops", equal ? "tensor_equals" : "tensor_not_equals")
            .release();
    if (f == nullptr) return nullptr;
  }
  return Called<PyObject_CallFunctionObjArgs>(f, x, y, nullptr);
}

}  // namespace

void SetTensorEquality(bool on) { tensor_equality = on; }
bool TensorEquality() { return tensor_equality; }

bool ComparesByIdentity(PyObject* o) {
  if (!IsTensor(o)) return false;
  if (!tensor_equality) return true;
  const Value& v = ValueOf(o);
  if (!v || !v.is_symbolic()) return false;
  // In functions elements compare, unless those are called by a session.
  return !v.graph()->is_body || ParentGraph() != 0;
}

bool IsText(PyObject* o) {
  if (KnownOperand(o)) return DTypeOfOperand(o) == DType::kString;
  if (IsArray(o)) return ArrayDType(o) == DType::kString;
  // No tensor is nested more deeply; a list may contain itself.
  for (int depth = 0; depth <= Shape::kMaxRank && IsSequence(o) &&
                      PySequence_Fast_GET_SIZE(o) > 0;
       ++depth) {
    o = PySequence_Fast_GET_ITEM(o, 0);
    if (KnownOperand(o)) return DTypeOfOperand(o) == DType::kString;
  }
  return ScalarDType(o) == DType::kString;
}

[[gnu::hot]] PyObject* AddTensors(PyObject* x, PyObject* y) {
  static Operator add{"AddV2", "add", "__radd__", "math.add", true};
  static Operator join{"Add", "add", "__radd__", "math.add", true};
  PyObject* known = KnownOperand(x) ? x : y;
  return Binary(DTypeOfOperand(known) == DType::kString ? join : add, x, y);
}
[[gnu::hot]] PyObject* SubtractTensors(PyObject* x, PyObject* y) {
  static Operator o{"Sub", "sub", "__rsub__", "math.subtract"};
  return Binary(o, x, y);
}
[[gnu::hot]] PyObject* MultiplyTensors(PyObject* x, PyObject* y) {
  static Operator o{"Mul", "mul", "__rmul__", "math.multiply"};
  static PyObject* of_bools = nullptr;
  if (IsBool(x) || IsBool(y)) [[unlikely]] {
    return CallPython(of_bools, "multiply_bools", x, y, o.reflected,
                      o.function);
  }
  return Binary(o, x, y);
}
[[gnu::hot]] PyObject* DivideTensors(PyObject* x, PyObject* y) {
  static Operator o{"RealDiv", "truediv", "__rtruediv__", "math.truediv"};
  static PyObject* general = nullptr;
  PyObject *t = IsTensor(x) ? x : y, *other = IsTensor(x) ? y : x;
  // Equal floating dtypes divide as they are; integers become floating first,
  // which Python's truediv decides.
  const bool plain = PyFloat_CheckExact(other) || PyLong_CheckExact(other) ||
                     (IsTensor(other) && IsTensor(t) &&
                      ValueOf(t).dtype() == ValueOf(other).dtype());
  if (plain && IsTensor(t) && IsFloating(ValueOf(t).dtype())) {
    return Binary(o, x, y);
  }
  return CallPython(general, "truediv", x, y, o.reflected, o.function);
}
PyObject* FloorDivideTensors(PyObject* x, PyObject* y) {
  static Operator o{"FloorDiv", "floordiv", "__rfloordiv__", "math.floordiv"};
  return Binary(o, x, y);
}
PyObject* ModTensors(PyObject* x, PyObject* y) {
  static Operator o{"FloorMod", "mod", "__rmod__", "math.floormod"};
  return Binary(o, x, y);
}
PyObject* PowerTensors(PyObject* x, PyObject* y, PyObject* modulus) {
  static Operator o{"Pow", "pow", "__rpow__", "math.pow"};
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() of tensors takes no modulus");
    return nullptr;
  }
  return Binary(o, x, y);
}
PyObject* MatmulTensors(PyObject* x, PyObject* y) {
  static PyObject* general = nullptr;
  return CallPython(general, "matmul", x, y, "__rmatmul__", "linalg.matmul");
}
PyObject* AndTensors(PyObject* x, PyObject* y) {
  static Operator logical{"LogicalAnd", "and", "__rand__", "math.logical_and"};
  static Operator bitwise{"BitwiseAnd", "and", "__rand__", "math.logical_and"};
  return Bitwise(logical, bitwise, x, y);
}
PyObject* OrTensors(PyObject* x, PyObject* y) {
  static Operator logical{"LogicalOr", "or", "__ror__", "math.logical_or"};
  static Operator bitwise{"BitwiseOr", "or", "__ror__", "math.logical_or"};
  return Bitwise(logical, bitwise, x, y);
}
PyObject* XorTensors(PyObject* x, PyObject* y) {
  static Operator bitwise{"BitwiseXor", "xor", "__rxor__", "math.logical_xor"};
  static PyObject* general = nullptr;
  PyObject* t = IsTensor(x) ? x : y;
  if (IsBool(t)) {
    return CallPython(general, "logical_xor", x, y, "__rxor__",
                      bitwise.function);
  }
  return Binary(bitwise, x, y);
}
PyObject* NegateTensor(PyObject* x) { return Unary("Neg", x); }
PyObject* AbsTensor(PyObject* x) {
  // The modulus of complex numbers is real: another op, as its dtype differs
  // from its input's.
  return Unary(IsComplex(ValueOf(x).dtype()) ? "ComplexAbs" : "Abs", x);
}
PyObject* InvertTensor(PyObject* x) {
  return Unary(IsBool(x) ? "LogicalNot" : "Invert", x);
}

PyObject* CompareTensors(PyObject* x, PyObject* y, int op) {
  static struct {
    const char *op, *function;
    OpCaller* caller;
  } orders[] = {{"Less", "math.less", nullptr},
                {"LessEqual", "math.less_equal", nullptr},
                {"Greater", "math.greater", nullptr},
                {"GreaterEqual", "math.greater_equal", nullptr}};
  if (op == Py_EQ || op == Py_NE) return Equality(x, y, op == Py_EQ);
  auto& o = orders[op == Py_LT ? 0 : op == Py_LE ? 1 : op == Py_GT ? 2 : 3];
  PyObject* answer;
  if (DispatchOperator(o.function, x, y, &answer)) return answer;
  return CallBinary(o.caller, o.op, x, y);
}

}  // namespace headrace::bind
