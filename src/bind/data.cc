// What datasets need beside their ops.
#include "bind/data.h"

#include "bind/convert.h"
#include "bind/status.h"
#include "bind/tensor_object.h"
#include "data/element_codec.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

template <StatusOr<Tensor> (*F)(const Tensor&)>
nb::object Apply(nb::handle tensor) {
  if (!IsTensor(tensor.ptr())) throw nb::type_error("not a tensor");
  const Value v = ValueOf(tensor.ptr());
  if (v.is_symbolic()) throw nb::type_error("a tensor without a value");
  StatusOr<Tensor> result = F(v.tensor());
  if (!result.ok()) {
    RaiseStatus(result.status());
    nb::raise_python_error();
  }
  return nb::steal(WrapValue(Value(*std::move(result))));
}

}  // namespace

void AddData(nb::module_& m) {
  m.def("encode_iterator_state", Apply<EncodeStates>);
  m.def("decode_iterator_state", Apply<DecodeStates>);
}

}  // namespace headrace::bind
