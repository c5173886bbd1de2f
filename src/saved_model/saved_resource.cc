#include "saved_model/saved_resource.h"

#include "op/resource.h"
#include "tensor/variant.h"

namespace headrace {

StatusOr<Value> OwnedResource(const Tensor& handle) {
  HR_ASSIGN_OR_RETURN(auto resource, ResourceOf(handle, &DefaultResources()));
  ResourceHandle owned = *handle.data<ResourceHandle>();
  if (!owned.resource) {
    DefaultResources()
        .Delete(owned.container, owned.name, owned.kind)
        .IgnoreError();
    owned.resource = std::move(resource);
  }
  return Value(Tensor::Scalar(std::move(owned)));
}

template <typename F>
Status SavedResourceNode::ForEach(F&& fn) const {
  for (const Part& part : parts_) {
    const Value key(Tensor::Scalar<std::string>(part.name));
    ValueList found;
    HR_RETURN_IF_ERROR(part.save->Call({&key, 1}, &found));
    if (found.size() % 3 != 0) {
      return DataLoss("a function that saves ", part.name, " gives ",
                      found.size(), " tensors, not three a value");
    }
    for (size_t i = 0; i < found.size(); i += 3) {
      const Tensor& name = found[i].tensor();
      if (name.dtype() != DType::kString || name.num_elements() != 1) {
        return DataLoss("a function that saves ", part.name, " gives a ",
                        DTypeName(name.dtype()), " tensor as a name");
      }
      HR_RETURN_IF_ERROR(
          fn(part, *name.data<std::string>(), found[i + 2].tensor()));
    }
  }
  return OkStatus();
}

StatusOr<std::vector<ValueSpec>> SavedResourceNode::Specs() const {
  std::vector<ValueSpec> specs;
  HR_RETURN_IF_ERROR(ForEach([&](const Part& part, const std::string& name,
                                 const Tensor& t) {
    // Sizes may be other ones: a table has as many keys as it has.
    specs.push_back({.name = name, .dtype = t.dtype(), .attribute = part.name});
    return OkStatus();
  }));
  return specs;
}

StatusOr<std::vector<Tensor>> SavedResourceNode::Read() const {
  std::vector<Tensor> values;
  HR_RETURN_IF_ERROR(
      ForEach([&](const Part&, const std::string&, const Tensor& t) {
        values.push_back(t);
        return OkStatus();
      }));
  return values;
}

Status SavedResourceNode::Write(absl::Span<const Tensor> values) {
  size_t next = 0;
  for (const Part& part : parts_) {
    std::vector<Value> inputs;
    const size_t n = part.restore->num_args();
    for (size_t i = 0; i < n && next < values.size(); ++i, ++next) {
      if (!values[next].has_buffer()) {
        return DataLoss("the checkpoint has a part of ", part.name, " only");
      }
      inputs.emplace_back(values[next]);
    }
    ValueList nothing;
    HR_RETURN_IF_ERROR(part.restore->Call(inputs, &nothing));
  }
  return OkStatus();
}

}  // namespace headrace
