#include "bind/value/number_checks.h"

#include <cmath>

#include "bind/python/graph_object.h"
#include "bind/python/status.h"
#include "bind/value/after_ops.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

bool AllFinite(const Tensor& t) {
  bool finite = true;
  DispatchDType(t.dtype(), FloatTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = t.data<T>();
    // Stops at the first: the message is Python's, which looks at the whole.
    for (int64_t i = 0, n = t.num_elements(); finite && i < n; ++i) {
      finite = std::isfinite(static_cast<double>(x[i]));
    }
  });
  return finite;
}

nb::list Listed(absl::Span<const Value> values) {
  nb::list out;
  for (const Value& v : values) out.append(WrapObject(v));
  return out;
}

// Python tells of what is not finite here, and checks in graphs what is not
// known yet.
Status Check(const OpDef* op, StringView name, absl::Span<const Value> inputs,
             ValueList* outputs) {
  // Moved numbers were checked where they were made.
  if (op && op->Has(OpTrait::kMovesNumbers)) return OkStatus();
  for (size_t i = 0; i < outputs->size(); ++i) {
    Value& v = (*outputs)[i];
    if (!IsFloating(v.dtype())) continue;
    // In graphs Python adds a check behind the output instead.
    if (!v.is_symbolic() && AllFinite(v.tensor())) continue;
    WithGil locked;
    static PyObject* checked =
        Import("framework.number_checks", "checked").release();
    if (checked == nullptr) return Unknown("a check of numbers failed");
    try {
      nb::object found = OrPark([&] {
        return nb::handle(checked)(nb::str(name.data(), name.size()), i,
                                   outputs->size(), Listed(inputs),
                                   WrapObject(v));
      });
      // What follows reads the checked value, so that the check runs before.
      v = ValueOrHandle(found);
    } catch (nb::python_error& e) {
      e.restore();  // raised again by whoever emitted
      return InvalidArgument(name, ": an output is not finite");
    }
  }
  return OkStatus();
}

}  // namespace

void AddNumberChecks(nb::module_& m) {
  m.def("check_numbers", [](bool on) {
    SetAfterOp(AfterOp::kCheckNumbers, on ? &Check : nullptr);
  });
}

}  // namespace headrace::bind
