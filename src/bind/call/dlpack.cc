// Tensors as DLPack capsules, and back: memory that is shared, not copied.
#include "bind/call/dlpack.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/numbers/bools.h"
#include "bind/call/op_call.h"
#include "bind/python/status.h"
#include "bind/value/tensor_object.h"

namespace headrace::bind {
namespace {

// The structures of DLPack's C interface, as capsules named "dltensor" have
// them.
struct DLDevice {
  int32_t type;
  int32_t id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: rows one behind the other
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

constexpr int32_t kCpu = 1;
constexpr char kCapsule[] = "dltensor";
constexpr char kUsedName[] = "used_dltensor";

struct TypeRow {
  DType dtype;
  uint8_t code, bits;
};
enum : uint8_t {
  kInt = 0,
  kUint = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex,
  kBool
};
constexpr TypeRow kTypes[] = {
    {DType::kInt8, kInt, 8},           {DType::kInt16, kInt, 16},
    {DType::kInt32, kInt, 32},         {DType::kInt64, kInt, 64},
    {DType::kUint8, kUint, 8},         {DType::kUint16, kUint, 16},
    {DType::kUint32, kUint, 32},       {DType::kUint64, kUint, 64},
    {DType::kHalf, kFloat, 16},        {DType::kFloat, kFloat, 32},
    {DType::kDouble, kFloat, 64},      {DType::kBfloat16, kBfloat, 16},
    {DType::kComplex64, kComplex, 64}, {DType::kComplex128, kComplex, 128},
    {DType::kBool, kBool, 8},
};

// What a capsule's structure points to.
struct Shared {
  DLManagedTensor managed;
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

void DeleteUnused(PyObject* capsule) {
  // One that was consumed has another name, and its memory another owner.
  if (!PyCapsule_IsValid(capsule, kCapsule)) return;
  auto* m =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (m->deleter) m->deleter(m);
}

StatusOr<std::unique_ptr<Shared>> Share(const Tensor& t) {
  const TypeRow* row = nullptr;
  // A dtype without a row has no code in DLPack: strings, quantized numbers,
  // objects.
  for (const TypeRow& r : kTypes) {
    if (r.dtype == t.dtype()) row = &r;
  }
  if (row == nullptr) {
    return InvalidArgument(DTypePythonName(t.dtype()),
                           " is not supported by dlpack");
  }
  // One block for what the capsule points to: the consumer's call of the
  // deleter frees the shape and the strides along with the tensor.
  auto s = std::make_unique<Shared>();
  s->tensor = t;
  s->shape.assign(t.shape().dims().begin(), t.shape().dims().end());
  // Written out though null would mean the same: not every consumer takes null.
  s->strides.resize(s->shape.size());
  int64_t stride = 1;
  for (size_t i = s->shape.size(); i-- > 0;) {
    s->strides[i] = stride;
    stride *= s->shape[i];
  }
  s->managed.tensor = {
      t.raw(),         {kCpu, 0},         t.rank(), {row->code, row->bits, 1},
      s->shape.data(), s->strides.data(), 0};
  s->managed.context = s.get();
  s->managed.deleter = [](DLManagedTensor* m) {
    delete static_cast<Shared*>(m->context);
  };
  return s;
}

bool IsContiguous(const DLTensor& t) {
  if (t.strides == nullptr) return true;
  int64_t stride = 1;
  for (int i = t.ndim; i-- > 0;) {
    // Without elements no stride is ever used; producers put anything there.
    if (t.shape[i] == 0) return true;
    // The stride of a dimension of one is never used either, and NumPy leaves
    // it arbitrary.
    if (t.shape[i] != 1 && t.strides[i] != stride) return false;
    stride *= t.shape[i];
  }
  return true;
}

void Release(void* owner) {
  auto* m = static_cast<DLManagedTensor*>(owner);
  // At the end of the process the memory goes with it: a deleter that needs
  // Python could only crash.
  if (m->deleter == nullptr || !Py_IsInitialized()) return;
  // The deleters of NumPy and others drop Python references.
  if (const WithGil locked{std::nothrow}) {
    OrPark([m] { m->deleter(m); });
  }
}

// The memory of `m` as a tensor, which owns it from then on; not after an
// error.
StatusOr<Tensor> Wrap(DLManagedTensor* m) {
  const DLTensor& d = m->tensor;
  if (d.device.type != kCpu) {
    return InvalidArgument("DLPack device type ", d.device.type,
                           " is not supported: only the CPU's memory is");
  }
  DType dtype = DType::kInvalid;
  for (const TypeRow& r : kTypes) {
    // Vectors as elements have no dtype here.
    if (r.code == d.dtype.code && r.bits == d.dtype.bits &&
        d.dtype.lanes == 1) {
      dtype = r.dtype;
    }
  }
  if (dtype == DType::kInvalid) {
    // (Bytes would be printed as characters.)
    return InvalidArgument("Unsupported DLPack type: code ", d.dtype.code + 0,
                           ", ", d.dtype.bits + 0, " bits, ", d.dtype.lanes,
                           " lanes");
  }
  if (d.ndim < 0 || (d.ndim > 0 && d.shape == nullptr)) {
    return InvalidArgument("A DLPack tensor without a shape");
  }
  HR_ASSIGN_OR_RETURN(Shape shape,
                      Shape::Make(absl::MakeConstSpan(d.shape, d.ndim)));
  if (!IsContiguous(d)) {
    return InvalidArgument("Invalid strides array from DLPack");
  }
  const size_t bytes = shape.num_elements() * DTypeSize(dtype);
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  // Producers give null for arrays without elements.
  if (bytes > 0 && d.data == nullptr) {
    return InvalidArgument("A DLPack tensor without data");
  }
  // A byte offset may leave the data where its type cannot be read.
  const bool aligned =
      reinterpret_cast<uintptr_t>(data) % DTypeSize(dtype) == 0;
  if (bytes > 0 && aligned && dtype != DType::kBool) {
    return Tensor::Wrap(dtype, shape, data, bytes, m, Release);
  }
  // Kernels read whole elements, and of a bool's byte only 0 and 1.
  HR_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(dtype, shape));
  if (bytes > 0) std::memcpy(copy.raw(), data, bytes);
  if (dtype == DType::kBool) MakeBools(copy.raw(), bytes);
  Release(m);
  return copy;
}

PyObject* Raised(const Status& s) { return RaiseStatus(s), nullptr; }

PyObject* ToDlpack(PyObject*, PyObject* o) {
  if (!IsTensor(o) || ValueOf(o).is_symbolic()) {
    return Raised(InvalidArgument(
        "The argument to `to_dlpack` must be a TF tensor, not Python object"));
  }
  StatusOr<std::unique_ptr<Shared>> shared = Share(ValueOf(o).tensor());
  if (!shared.ok()) return Raised(shared.status());
  PyObject* capsule =
      PyCapsule_New(&(*shared)->managed, kCapsule, DeleteUnused);
  // From here on the capsule owns it: DeleteUnused or its consumer frees it.
  if (capsule != nullptr) shared->release();
  return capsule;
}

PyObject* FromDlpack(PyObject*, PyObject* capsule) {
  if (!PyCapsule_CheckExact(capsule)) {
    PyErr_Format(PyExc_TypeError,
                 "from_dlpack wants a DLPack capsule, not a %s",
                 NameOfType(capsule).c_str());
    return nullptr;
  }
  if (!PyCapsule_IsValid(capsule, kCapsule)) {
    const char* name = PyCapsule_GetName(capsule);
    // A capsule without a name is no error of its own.
    PyErr_Clear();
    return Raised(InvalidArgument(
        "DLPack tensor must be a capsule with name \"dltensor\", got \"",
        name ? name : "", "\". Note that a DLPack tensor may be consumed at ",
        "most once."));
  }
  auto* m =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsule));
  StatusOr<Tensor> t = Wrap(m);
  if (!t.ok()) return Raised(t.status());
  // As DLPack asks: the name tells every other consumer, and the capsule's
  // destructor, that the memory has an owner.
  PyCapsule_SetName(capsule, kUsedName);
  // A tensor exists, so settings of threads and devices are fixed, as
  // upstream's are once its context is.
  NoteContextUsed();
  return WrapValue(Value(*std::move(t)));
}

PyMethodDef dlpack_functions[] = {
    {"to_dlpack", Shield<ToDlpack>, METH_O,
     "to_dlpack(tensor): a capsule of its memory, which lives on with it."},
    {"from_dlpack", Shield<FromDlpack>, METH_O,
     "from_dlpack(capsule): a tensor of its memory; once a capsule."},
    {}};

}  // namespace

bool AddDlpack(PyObject* module) {
  return PyModule_AddFunctions(module, dlpack_functions) == 0;
}

}  // namespace headrace::bind
