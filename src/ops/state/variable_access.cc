#include "ops/state/variable_access.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/strip.h"
#include "base/cancellation.h"

namespace headrace {
namespace {

// Takes the locks of `order` from position `k` on, then calls fn.
Status LockFrom(absl::Span<const VariableInput* const> order, size_t k,
                absl::Span<Tensor*> values,
                absl::Span<const VariableInput> inputs,
                absl::FunctionRef<Status(absl::Span<Tensor*>)> fn) {
  // Nested calls, as each variable's lock is held by its own Update.
  if (k == order.size()) return fn(values);
  Variable* variable = order[k]->variable.get();
  HR_RETURN_IF_ERROR(CheckReferred(*order[k]));
  return variable->Update(order[k]->name, [&](Tensor& value) {
    const StopHold whole;
    for (size_t i = 0; i < inputs.size(); ++i) {
      // One variable may be given for several slots; all of them see the same
      // tensor.
      if (inputs[i].variable.get() == variable) values[i] = &value;
    }
    return LockFrom(order, k + 1, values, inputs, fn);
  });
}

}  // namespace

StatusOr<VariableInput> VariableOf(const KernelContext& c, int i) {
  auto variable = ResourceAs<Variable>(c.input(i), c.services().resources);
  constexpr StringView kGone = " does not exist.";
  StringView text = variable.status().message();
  if (absl::IsNotFound(variable.status()) &&
      absl::ConsumeSuffix(&text, kGone)) {
    // Upstream's text names the kind of resource too, as its compiler does.
    return NotFound(text, "/N10tensorflow3VarE", kGone);
  }
  HR_RETURN_IF_ERROR(variable.status());
  return VariableInput{*std::move(variable),
                       c.input(i).scalar<ResourceHandle>().name,
                       IsRef(c.op().input_types()[i])};
}

Status CheckReferred(const VariableInput& v) {
  if (!v.is_ref || v.variable->initialized()) return OkStatus();
  return FailedPrecondition("Attempting to use uninitialized value ", v.name);
}

StatusOr<Tensor> ReadVariable(const KernelContext& c, int i, DType dtype) {
  HR_ASSIGN_OR_RETURN(const VariableInput v, VariableOf(c, i));
  return ReadVariable(v, dtype);
}

StatusOr<Tensor> ReadVariable(const VariableInput& v, DType dtype) {
  if (v.variable->dtype() != dtype) {
    return InvalidArgument(
        "Trying to read variable with wrong dtype. Expected ", DTypeName(dtype),
        " got ", DTypeName(v.variable->dtype()));
  }
  return v.variable->Read(v.name);
}

Status UpdateVariables(
    absl::Span<const VariableInput> inputs, DType dtype,
    absl::FunctionRef<Status(absl::Span<Tensor*> values)> fn) {
  for (const VariableInput& v : inputs) {
    if (v.variable->dtype() != dtype) {
      return InvalidArgument(
          "Trying to update variable with wrong dtype. Expected ",
          DTypeName(v.variable->dtype()), " got ", DTypeName(dtype));
    }
  }
  // Locks are taken in order of address, so that two updates cannot wait for
  // one another.
  absl::InlinedVector<const VariableInput*, 4> order;
  for (const VariableInput& v : inputs) order.push_back(&v);
  auto address = [](const VariableInput* v) { return v->variable.get(); };
  std::sort(order.begin(), order.end(), [&](auto* a, auto* b) {
    return std::less<>()(address(a), address(b));
  });
  order.erase(
      std::unique(order.begin(), order.end(),
                  [&](auto* a, auto* b) { return address(a) == address(b); }),
      order.end());
  absl::InlinedVector<Tensor*, 4> values(inputs.size());
  return LockFrom(order, 0, absl::MakeSpan(values), inputs, fn);
}

StatusOr<Tensor> Keepable(const Tensor& t) {
  return t.counted() ? t : t.Clone();
}

Shape HandleShape(const ShapeContext& c, int i) {
  const HandleData* data = c.input_handle(i);
  return data && !data->empty() ? data->front().shape : Shape::UnknownRank();
}

}  // namespace headrace
