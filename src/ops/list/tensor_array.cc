#include "ops/list/tensor_array.h"

#include "op/run_kernel.h"
#include "ops/math/loops/wrapping.h"

namespace headrace {
namespace {

// Bounds what a size or place from outside may ask for.
constexpr int64_t kMostItems = int64_t{1} << 28;

StatusOr<Tensor> Sum(const Tensor& a, const Tensor& b) {
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(a.dtype(), a.shape()));
  bool known = DispatchDType(a.dtype(), NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      out.data<T>()[i] = Plus(a.data<T>()[i], b.data<T>()[i]);
    }
  });
  if (!known) {
    return InvalidArgument("TensorArray: values of ", DTypeName(a.dtype()),
                           " cannot be summed");
  }
  return out;
}

}  // namespace

StatusOr<TensorArray::Item*> TensorArray::At(int64_t index, bool grow) {
  int64_t n = static_cast<int64_t>(items_.size());
  if (index >= n && grow && options_.dynamic_size && index < kMostItems) {
    // A place from outside may ask for any amount of memory.
    HR_RETURN_IF_ERROR(CheckRoomFor(index + 1, sizeof(Item)));
    items_.resize(index + 1);
    n = index + 1;
  }
  if (index < 0 || index >= n) {
    return InvalidArgument("TensorArray: Tried to ", grow ? "write to" : "read",
                           " index ", index,
                           grow && !options_.dynamic_size
                               ? " but array is not resizeable and size is: "
                               : " but array size is: ",
                           n);
  }
  return &items_[index];
}

Status TensorArray::Write(int64_t index, const Tensor& value) {
  MutexLock lock(mutex_);
  if (value.dtype() != options_.dtype) {
    return InvalidArgument(
        "TensorArray: Could not write to index ", index,
        " because the value dtype is ", DTypeName(value.dtype()),
        " but TensorArray dtype is ", DTypeName(options_.dtype), ".");
  }
  if (!options_.element_shape.CompatibleWith(value.shape())) {
    return InvalidArgument("TensorArray: Could not write to index ", index,
                           " because the value shape is ", value.shape(),
                           " which is incompatible with the TensorArray's "
                           "inferred element shape: ",
                           options_.element_shape, ".");
  }
  HR_ASSIGN_OR_RETURN(Item * item, At(index, /*grow=*/true));
  if (!item->value.has_buffer()) {
    item->value = value;
    item->shape = value.shape();
    return OkStatus();
  }
  // Gradient arrays sum, as a value that was read several times has several
  // gradients.
  if (!options_.sums) {
    return InvalidArgument("TensorArray: Could not write to index ", index,
                           " because it has already been written to.");
  }
  if (item->value.shape() != value.shape()) {
    return InvalidArgument("TensorArray: Could not aggregate to index ", index,
                           " because the existing shape is ",
                           item->value.shape(), " but the new input shape is ",
                           value.shape(), ".");
  }
  HR_ASSIGN_OR_RETURN(item->value, Sum(item->value, value));
  return OkStatus();
}

StatusOr<Tensor> TensorArray::Read(int64_t index) {
  MutexLock lock(mutex_);
  HR_ASSIGN_OR_RETURN(Item * item, At(index, /*grow=*/false));
  if (item->cleared) {
    return InvalidArgument("TensorArray: Could not read index ", index,
                           " twice because it was cleared after a previous "
                           "read (perhaps try setting clear_after_read = "
                           "false?).");
  }
  if (!item->value.has_buffer()) {
    // A gradient that nobody wrote is zero; a value that nobody wrote is an
    // error.
    const Shape& shape =
        item->shape.fully_known() ? item->shape : options_.element_shape;
    if (!options_.sums || !shape.fully_known()) {
      return InvalidArgument(
          "TensorArray: Could not read from TensorArray "
          "index ",
          index, " because it has not yet been written to.");
    }
    HR_ASSIGN_OR_RETURN(Tensor zero, Tensor::Allocate(options_.dtype, shape));
    FillZero(zero);
    return zero;
  }
  Tensor value = item->value;
  if (options_.clear_after_read) {
    item->value = Tensor();
    // Told apart from an item that was never written, for the sake of the text.
    item->cleared = true;
  }
  return value;
}

int64_t TensorArray::size() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(items_.size());
}

void TensorArray::Clear() {
  MutexLock lock(mutex_);
  items_.clear();
  gradients_.clear();
}

std::shared_ptr<TensorArray> TensorArray::GradientOf(const std::string& source,
                                                     const Shape& prepended) {
  MutexLock lock(mutex_);
  // One gradient array for each call of gradients (its source), so that second
  // derivatives do not mix with first ones.
  std::shared_ptr<TensorArray>& gradient = gradients_[source];
  if (!gradient) {
    Options options = options_;
    options.sums = true;
    // Each gradient is read once; then its memory can go. Those of gradients
    // are read once for each value that was summed.
    options.clear_after_read = !options_.sums;
    options.element_shape = prepended.Concat(options_.element_shape);
    gradient = std::make_shared<TensorArray>(
        options, static_cast<int64_t>(items_.size()));
    MutexLock its_own(gradient->mutex_);
    for (size_t i = 0; i < items_.size(); ++i) {
      gradient->items_[i].shape = prepended.Concat(items_[i].shape);
    }
  }
  return gradient;
}

namespace {

constexpr StringView kArrays = "_tensor_arrays";

// The arrays that text handles name.
class ArrayNames {
 public:
  static ArrayNames& Get() {
    static auto* names = new ArrayNames;
    return *names;
  }
  std::string Add(StringView prefix, std::weak_ptr<TensorArray> array) {
    MutexLock lock(mutex_);
    std::string name = absl::StrCat(prefix, "_", count_++);
    arrays_[name] = std::move(array);
    return name;
  }
  void Remove(const std::string& name) {
    MutexLock lock(mutex_);
    arrays_.erase(name);
  }
  std::shared_ptr<TensorArray> Find(const std::string& name) {
    MutexLock lock(mutex_);
    auto it = arrays_.find(name);
    return it == arrays_.end() ? nullptr : it->second.lock();
  }

 private:
  Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::weak_ptr<TensorArray>> arrays_
      ABSL_GUARDED_BY(mutex_);
};

// What the tensor of a text handle owns.
struct NamedArray {
  std::string text[2];  // the container and the name
  std::shared_ptr<TensorArray> array;
};

void ForgetArray(void* owner) {
  auto* named = static_cast<NamedArray*>(owner);
  ArrayNames::Get().Remove(named->text[1]);
  delete named;
}

}  // namespace

Tensor TextHandleOf(std::shared_ptr<TensorArray> array, StringView name) {
  auto named = std::make_unique<NamedArray>();
  named->text[0] = std::string(kArrays);
  named->text[1] = ArrayNames::Get().Add(name, array);
  named->array = std::move(array);
  NamedArray* owner = named.release();
  return Tensor::Wrap(DType::kString, Shape{2}, owner->text,
                      sizeof(owner->text), owner, ForgetArray);
}

StatusOr<std::shared_ptr<TensorArray>> ArrayOfText(const Tensor& handle) {
  if (handle.num_elements() != 2) {
    return InvalidArgument(
        "Tensor array handle must be 2-element vector, but had shape: ",
        handle.shape());
  }
  const std::string* text = handle.data<std::string>();
  auto array = text[0] == kArrays ? ArrayNames::Get().Find(text[1]) : nullptr;
  if (array) return array;
  return NotFound("Could not find TensorArray: ", text[0], "/", text[1]);
}

}  // namespace headrace
