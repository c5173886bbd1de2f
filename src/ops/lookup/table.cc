#include "ops/lookup/table.h"

#include <algorithm>
#include <cstring>

#include "base/hash_map.h"
#include "ops/array/element_dispatch.h"
#include "ops/io/summarize.h"

namespace headrace {

// Key -> slot; numbers by their bits.
struct LookupTable::Index {
  HashMap<std::string, int64_t> strings;
  HashMap<uint64_t, int64_t> numbers;

  int64_t Find(const Tensor& keys, int64_t i) const {
    if (keys.dtype() == DType::kString) {
      auto it = strings.find(keys.data<std::string>()[i]);
      return it == strings.end() ? -1 : it->second;
    }
    auto it = numbers.find(BitsOf(keys, i));
    return it == numbers.end() ? -1 : it->second;
  }
  void Add(const Tensor& keys, int64_t i, int64_t slot) {
    if (keys.dtype() == DType::kString)
      strings[keys.data<std::string>()[i]] = slot;
    else
      numbers[BitsOf(keys, i)] = slot;
  }
  void Remove(const Tensor& keys, int64_t i) {
    if (keys.dtype() == DType::kString)
      strings.erase(keys.data<std::string>()[i]);
    else
      numbers.erase(BitsOf(keys, i));
  }
  void Clear() {
    strings.clear();
    numbers.clear();
  }
  int64_t size() const {
    return static_cast<int64_t>(strings.size() + numbers.size());
  }
  static uint64_t BitsOf(const Tensor& keys, int64_t i) {
    const size_t bytes = DTypeSize(keys.dtype());
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char*>(keys.raw()) + i * bytes, bytes);
    // Zero has two forms.
    const bool floating = IsFloating(keys.dtype());
    if (floating && bits == uint64_t{1} << (8 * bytes - 1)) bits = 0;
    return bits;
  }
};

void CopyStretch(const Tensor& x, int64_t from, const Tensor& y, int64_t to,
                 int64_t n) {
  DispatchElement(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy_n(static_cast<const T*>(x.raw()) + from, n,
                static_cast<T*>(y.raw()) + to);
  });
}

bool SameStretch(const Tensor& x, int64_t i, const Tensor& y, int64_t j,
                 int64_t n) {
  if (x.dtype() == DType::kString) {
    return std::equal(x.data<std::string>() + i, x.data<std::string>() + i + n,
                      y.data<std::string>() + j);
  }
  const size_t bytes = DTypeSize(x.dtype());
  return std::memcmp(static_cast<const char*>(x.raw()) + i * bytes,
                     static_cast<const char*>(y.raw()) + j * bytes,
                     n * bytes) == 0;
}

namespace {

// Elements [i, i + n) as text.
std::string Text(const Tensor& t, int64_t i, int64_t n) {
  const int64_t all = t.num_elements();
  return SummarizeFlat(t.WithShape(Shape{all}).Rows(i, i + n), n);
}

}  // namespace

LookupTable::LookupTable(DType key, DType value, Shape value_shape, bool fixed)
    : Table(key, value, std::move(value_shape)),
      width_(value_shape_.num_elements()),
      fixed_(fixed),
      index_(std::make_unique<Index>()) {}

LookupTable::~LookupTable() = default;

int64_t LookupTable::size() const {
  MutexLock lock(mutex_);
  return index_->size();
}

Status LookupTable::Find(const Tensor& keys, const Tensor& fallback,
                         Tensor& out) const {
  const int64_t n = keys.num_elements();
  const bool each = fallback.num_elements() == n * width_ && n != 1;
  if (!each && fallback.num_elements() != width_) {
    return InvalidArgument("Expected shape ", value_shape_,
                           " for default value, got ", fallback.shape());
  }
  MutexLock lock(mutex_);
  if (fixed_ && !filled_) return FailedPrecondition("Table not initialized.");
  for (int64_t i = 0; i < n; ++i) {
    const int64_t slot = index_->Find(keys, i);
    if (slot >= 0)
      CopyStretch(values_, slot * width_, out, i * width_, width_);
    else
      CopyStretch(fallback, each ? i * width_ : 0, out, i * width_, width_);
  }
  return OkStatus();
}

Status LookupTable::CheckPair(const Tensor& keys, const Tensor& values) const {
  const Shape expected = keys.shape().Concat(value_shape_);
  if (values.shape() == expected) return OkStatus();
  return InvalidArgument("Expected shape ", expected, " for value, got ",
                         values.shape());
}

Status LookupTable::Grow() {
  const int64_t room = std::max<int64_t>(16, 2 * used_);
  Shape shape{room};
  HR_ASSIGN_OR_RETURN(Tensor keys, Tensor::Allocate(key_, shape));
  HR_ASSIGN_OR_RETURN(Tensor values,
                      Tensor::Allocate(value_, shape.Concat(value_shape_)));
  if (used_ > 0) {
    CopyStretch(keys_, 0, keys, 0, used_);
    CopyStretch(values_, 0, values, 0, used_ * width_);
  }
  keys_ = std::move(keys);
  values_ = std::move(values);
  return OkStatus();
}

Status LookupTable::Put(const Tensor& keys, const Tensor& values) {
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    int64_t slot = index_->Find(keys, i);
    if (slot >= 0 && fixed_) {
      if (SameStretch(values_, slot * width_, values, i * width_, width_))
        continue;
      return FailedPrecondition(
          "HashTable has different value for same key. Key ", Text(keys, i, 1),
          " has ", Text(values_, slot * width_, width_),
          " and trying to add value ", Text(values, i * width_, width_));
    }
    if (slot < 0) {
      if (!free_.empty()) {
        slot = free_.back();
        free_.pop_back();
      } else {
        if (!keys_.has_buffer() || used_ == keys_.num_elements()) {
          HR_RETURN_IF_ERROR(Grow());
        }
        slot = used_++;
      }
      index_->Add(keys, i, slot);
      CopyStretch(keys, i, keys_, slot, 1);
    }
    CopyStretch(values, i * width_, values_, slot * width_, width_);
  }
  return OkStatus();
}

Status LookupTable::Insert(const Tensor& keys, const Tensor& values) {
  HR_RETURN_IF_ERROR(CheckPair(keys, values));
  if (fixed_) {
    return Unimplemented(
        "Insert not supported by InitializableLookupTable "
        "implementations");
  }
  MutexLock lock(mutex_);
  return Put(keys, values);
}

Status LookupTable::Import(const Tensor& keys, const Tensor& values) {
  HR_RETURN_IF_ERROR(CheckPair(keys, values));
  MutexLock lock(mutex_);
  if (fixed_ && filled_) return OkStatus();
  index_->Clear();
  free_.clear();
  used_ = 0;
  HR_RETURN_IF_ERROR(Put(keys, values));
  filled_ = true;
  return OkStatus();
}

Status LookupTable::Remove(const Tensor& keys) {
  if (fixed_) {
    return Unimplemented(
        "Remove not supported by InitializableLookupTable "
        "implementations");
  }
  MutexLock lock(mutex_);
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const int64_t slot = index_->Find(keys, i);
    if (slot < 0) continue;
    index_->Remove(keys, i);
    free_.push_back(slot);
  }
  return OkStatus();
}

Status LookupTable::Export(Tensor* keys, Tensor* values) const {
  MutexLock lock(mutex_);
  if (fixed_ && !filled_) return FailedPrecondition("Table not initialized.");
  std::vector<int64_t> slots;
  for (const auto& [key, slot] : index_->strings) slots.push_back(slot);
  for (const auto& [key, slot] : index_->numbers) slots.push_back(slot);
  std::sort(slots.begin(), slots.end());
  const Shape shape{static_cast<int64_t>(slots.size())};
  HR_ASSIGN_OR_RETURN(*keys, Tensor::Allocate(key_, shape));
  HR_ASSIGN_OR_RETURN(*values,
                      Tensor::Allocate(value_, shape.Concat(value_shape_)));
  for (size_t i = 0; i < slots.size(); ++i) {
    CopyStretch(keys_, slots[i], *keys, static_cast<int64_t>(i), 1);
    CopyStretch(values_, slots[i] * width_, *values,
                static_cast<int64_t>(i) * width_, width_);
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<Table>> TableOf(const KernelContext& c) {
  return ResourceAs<Table>(c.input(0), c.services().resources);
}

Status HandTable(
    KernelContext& c, bool named, HandleData data,
    const std::function<StatusOr<std::shared_ptr<Table>>()>& make) {
  const ResolvedOp& op = c.op();
  const DType key = op.type_attr("key_dtype");
  const DType value = op.type_attr("value_dtype");
  ResourceHandle handle;
  handle.data = std::make_shared<const HandleData>(std::move(data));
  if (named) {
    handle.name = op.string_attr("shared_name");
    handle.container = op.string_attr("container");
    if (handle.container.empty()) handle.container = "localhost";
  }
  if (handle.name.empty()) {
    HR_ASSIGN_OR_RETURN(handle.resource, make());
  } else {
    HR_ASSIGN_OR_RETURN(
        handle.resource,
        c.services().resources->LookUpOrCreate<Table>(
            handle.container, handle.name,
            [&]() -> StatusOr<std::shared_ptr<Table>> { return make(); }));
    handle.kind = &typeid(Table);
  }
  const auto* table = dynamic_cast<const Table*>(handle.resource.get());
  if (table != nullptr &&
      (table->key_dtype() != key || table->value_dtype() != value)) {
    return InvalidArgument(
        "Conflicting key/value dtypes ", DTypeName(key), "->", DTypeName(value),
        " with ", DTypeName(table->key_dtype()), "-",
        DTypeName(table->value_dtype()), " for table ", handle.name);
  }
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return OkStatus();
}

}  // namespace headrace
