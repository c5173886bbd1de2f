// Maps from tensors to tensors that variants hold: EmptyTensorMap and the
// TensorMap ops. A change makes a map of its own, as of lists.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "op/op.h"
#include "tensor/variant.h"

namespace headrace {
namespace {

// Keys compare by dtype, shape and bytes (or strings).
struct Before {
  bool operator()(const Tensor& a, const Tensor& b) const {
    if (a.dtype() != b.dtype()) return a.dtype() < b.dtype();
    const auto da = a.shape().dims(), db = b.shape().dims();
    if (!std::equal(da.begin(), da.end(), db.begin(), db.end())) {
      return std::lexicographical_compare(da.begin(), da.end(), db.begin(),
                                          db.end());
    }
    if (a.dtype() == DType::kString) {
      const auto* x = a.data<std::string>();
      const auto* y = b.data<std::string>();
      return std::lexicographical_compare(x, x + a.num_elements(), y,
                                          y + b.num_elements());
    }
    // Any order will do as long as it is the same for equal bytes.
    return std::memcmp(a.raw(), b.raw(), a.bytes()) < 0;
  }
};

class TensorMap : public VariantValue {
 public:
  StringView type_name() const override { return "tensorflow::TensorMap"; }
  std::string DebugString() const override {
    return absl::StrCat("TensorMap of ", items.size());
  }
  StatusOr<std::shared_ptr<const VariantValue>> ZerosLike() const override {
    auto zeros = std::make_shared<TensorMap>();
    for (const auto& [key, value] : items) {
      HR_ASSIGN_OR_RETURN(Tensor zero,
                          Tensor::Allocate(value.dtype(), value.shape()));
      FillZero(zero);
      zeros->items.emplace(key, std::move(zero));
    }
    return zeros;
  }
  std::map<Tensor, Tensor, Before> items;
};

StatusOr<const TensorMap*> MapInput(const KernelContext& c) {
  if (c.input(0).num_elements() != 1) {
    return InvalidArgument("Input map must be a scalar tensor but saw shape: ",
                           c.input(0).shape());
  }
  const auto* map = c.input(0).data<Variant>()->get<TensorMap>();
  if (!map) {
    return InvalidArgument("Input handle is not a map. Saw: '",
                           c.input(0).data<Variant>()->DebugString(), "'");
  }
  return map;
}

// A scalar as text, else what kind of tensor it is.
std::string DescribeKey(const Tensor& key) {
  if (key.dtype() == DType::kString && key.num_elements() == 1) {
    return *key.data<std::string>();
  }
  return absl::StrCat(DTypeName(key.dtype()), " ", key.shape().ToString());
}

StatusOr<const Tensor*> Find(const KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(c));
  const auto found = map->items.find(c.input(1));
  if (found == map->items.end()) {
    return InvalidArgument(
        "Trying to lookup non-existent key. Could not find "
        "key \"",
        DescribeKey(c.input(1)), "\".");
  }
  return &found->second;
}

Status SetMap(const KernelContext& c, std::shared_ptr<TensorMap> map) {
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(DType::kVariant, Shape()));
  *t.data<Variant>() = Variant(std::move(map));
  c.set_output(0, std::move(t));
  return OkStatus();
}

Status RunEmpty(KernelContext& c) {
  return SetMap(c, std::make_shared<TensorMap>());
}

Status RunSize(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(c));
  *c.out<int32_t>(0) = static_cast<int32_t>(map->items.size());
  return OkStatus();
}

Status RunLookup(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Tensor* value, Find(c));
  if (value->dtype() != c.op().type_attr("value_dtype")) {
    return InvalidArgument("the value's dtype is ", DTypeName(value->dtype()));
  }
  c.set_output(0, *value);
  return OkStatus();
}

Status RunInsert(KernelContext& c) {
  const DType key = c.input(1).dtype();
  // They have no order.
  if (key == DType::kVariant || key == DType::kResource) {
    return InvalidArgument("keys may not be of type ", DTypeName(key));
  }
  HR_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(c));
  // Others may hold the map: a change makes a copy, whose tensors are shared.
  auto made = std::make_shared<TensorMap>(*map);
  made->items.insert_or_assign(c.input(1), c.input(2));
  return SetMap(c, std::move(made));
}

Status RunErase(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(c));
  if (map->items.find(c.input(1)) == map->items.end()) {
    return InvalidArgument(
        "Trying to erase non-existent item. Could not find "
        "key \"",
        DescribeKey(c.input(1)), "\".");
  }
  auto made = std::make_shared<TensorMap>(*map);
  made->items.erase(c.input(1));
  return SetMap(c, std::move(made));
}

Status RunHasKey(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(c));
  *c.out<bool>(0) = map->items.find(c.input(1)) != map->items.end();
  return OkStatus();
}

template <typename T>
void CopyKeys(const TensorMap& map, T* to) {
  for (const auto& item : map.items) {
    to = std::copy_n(item.first.data<T>(), item.first.num_elements(), to);
  }
}

Status RunStackKeys(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const TensorMap* map, MapInput(c));
  if (map->items.empty()) {
    return InvalidArgument("TensorMapStackKeys cannot be called on empty map.");
  }
  const Tensor& first = map->items.begin()->first;
  const DType dtype = c.op().type_attr("key_dtype");
  for (const auto& item : map->items) {
    if (item.first.dtype() != dtype) {
      return InvalidArgument("Key does not match requested dtype.");
    }
    if (item.first.shape() != first.shape()) {
      return InvalidArgument("Keys must all have the same shape.");
    }
  }
  Shape shape = first.shape();
  shape.InsertDim(0, static_cast<int64_t>(map->items.size()));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  if (dtype == DType::kString) {
    CopyKeys(*map, c.out<std::string>(0));
    return OkStatus();
  }
  auto* to = static_cast<char*>(c.output(0).raw());
  for (const auto& item : map->items) {
    std::memcpy(to, item.first.raw(), item.first.bytes());
    to += item.first.bytes();
  }
  return OkStatus();
}

Status MapShape(ShapeContext& c) {
  c.set_output(0, Shape());
  return OkStatus();
}

HR_OP(EmptyTensorMap)
    .Output("handle: variant")
    .Doc("A map of nothing.")
    .Shape(MapShape)
    .Cpu(ComputeOwn<RunEmpty>);
HR_OP(TensorMapSize)
    .Input("input_handle: variant")
    .Output("size: int32")
    .Doc("How many keys a map has.")
    .Shape(MapShape)
    .Cpu(Compute<RunSize>);
HR_OP(TensorMapLookup)
    .Input("input_handle: variant")
    .Input("key: key_dtype")
    .Output("value: value_dtype")
    .Attr("key_dtype: type")
    .Attr("value_dtype: type")
    .Doc("The value of a key.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<RunLookup>);
HR_OP(TensorMapInsert)
    .Input("input_handle: variant")
    .Input("key: key_dtype")
    .Input("value: value_dtype")
    .Output("output_handle: variant")
    .Attr("key_dtype: type")
    .Attr("value_dtype: type")
    .Doc("A map with one more key, or another value for it.")
    .Shape(MapShape)
    .Cpu(ComputeOwn<RunInsert>);
HR_OP(TensorMapErase)
    .Input("input_handle: variant")
    .Input("key: key_dtype")
    .Output("output_handle: variant")
    .Attr("key_dtype: type")
    .Attr("value_dtype: type")
    .Doc("A map with one key less.")
    .Shape(MapShape)
    .Cpu(ComputeOwn<RunErase>);
HR_OP(TensorMapHasKey)
    .Input("input_handle: variant")
    .Input("key: key_dtype")
    .Output("has_key: bool")
    .Attr("key_dtype: type")
    .Doc("Whether a map has the key.")
    .Shape(MapShape)
    .Cpu(Compute<RunHasKey>);
HR_OP(TensorMapStackKeys)
    .Input("input_handle: variant")
    .Output("keys: key_dtype")
    .Attr("key_dtype: type")
    .Doc("All keys of a map, of one shape, stacked.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<RunStackKeys>);

}  // namespace
}  // namespace headrace
