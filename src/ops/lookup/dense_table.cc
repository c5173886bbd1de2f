#include "ops/lookup/dense_table.h"

#include <algorithm>

#include "op/op_like.h"
#include "ops/string/hash.h"

namespace headrace {
namespace {

bool IsBucketCount(int64_t n) { return n >= 4 && (n & (n - 1)) == 0; }

// Rows of `width` elements.
int64_t RowsOf(const Tensor& t, int64_t width) {
  return width == 0 ? 0 : t.num_elements() / width;
}

}  // namespace

StatusOr<std::shared_ptr<Table>> DenseTable::Make(Options o) {
  const DType key = o.empty_key.dtype();
  if (key != DType::kInt32 && key != DType::kInt64 && key != DType::kString) {
    return NotFound("no dense tables with keys of ", DTypeName(key));
  }
  if (!IsPlain(o.value) && o.value != DType::kString) {
    return InvalidArgument("no dense tables with values of ",
                           DTypeName(o.value));
  }
  if (o.empty_key.rank() > 1 || o.empty_key.num_elements() == 0) {
    return InvalidArgument("Empty key must be a scalar or a vector, got shape ",
                           o.empty_key.shape());
  }
  if (o.empty_key.shape() != o.deleted_key.shape()) {
    return InvalidArgument("Empty and deleted keys must have same shape, got ",
                           "shapes: ", o.empty_key.shape(), " and ",
                           o.deleted_key.shape());
  }
  if (SameStretch(o.empty_key, 0, o.deleted_key, 0,
                  o.empty_key.num_elements())) {
    return InvalidArgument("Empty and deleted keys cannot be equal");
  }
  if (!IsBucketCount(o.buckets)) {
    return InvalidArgument(
        "Number of buckets must be at least 4 and a power of 2, got: ",
        o.buckets);
  }
  if (!(o.most_full > 0 && o.most_full < 1)) {
    return InvalidArgument("max_load_factor must be between 0 and 1, got: ",
                           o.most_full);
  }
  if (!o.value_shape.fully_known()) {
    return InvalidArgument("Shape ", o.value_shape, " is not fully defined");
  }
  HR_RETURN_IF_ERROR(Shape::Make(o.value_shape.dims()).status());
  const int64_t count = o.buckets;
  std::shared_ptr<DenseTable> table(new DenseTable(std::move(o)));
  MutexLock lock(table->mutex_);
  HR_ASSIGN_OR_RETURN(table->buckets_, table->Empty(count));
  return std::shared_ptr<Table>(std::move(table));
}

DenseTable::DenseTable(Options o)
    : Table(o.empty_key.dtype(), o.value, o.value_shape),
      o_(std::move(o)),
      key_width_(o_.empty_key.num_elements()),
      width_(o_.value_shape.num_elements()) {}

bool DenseTable::IsEmpty(const Tensor& keys, int64_t row) const {
  return SameStretch(keys, row * key_width_, o_.empty_key, 0, key_width_);
}
bool DenseTable::IsDeleted(const Tensor& keys, int64_t row) const {
  return SameStretch(keys, row * key_width_, o_.deleted_key, 0, key_width_);
}

Status DenseTable::CheckKeys(const Tensor& keys) const {
  for (int64_t i = 0; i < RowsOf(keys, key_width_); ++i) {
    if (IsEmpty(keys, i)) {
      return InvalidArgument(
          "Using the empty_key as a table key is not allowed");
    }
    if (IsDeleted(keys, i)) {
      return InvalidArgument(
          "Using the deleted_key as a table key is not allowed");
    }
  }
  return OkStatus();
}

uint64_t DenseTable::HashOf(const Tensor& keys, int64_t row) const {
  auto one = [&](int64_t i) -> uint64_t {
    if (keys.dtype() == DType::kString) {
      return Hash64(keys.data<std::string>()[i]);
    }
    return static_cast<uint64_t>(keys.IntAt(i));
  };
  const int64_t begin = row * key_width_;
  if (key_width_ == 1) return one(begin);
  uint64_t hash = 0;
  for (int64_t i = begin; i < begin + key_width_; ++i) {
    hash ^= one(i) + 0x9e3779b97f4a7800ULL + (hash << 10) + (hash >> 4);
  }
  return hash;
}

int64_t DenseTable::PlaceOf(const Buckets& b, const Tensor& keys,
                            int64_t row) const {
  const auto mask = static_cast<uint64_t>(b.count) - 1;
  uint64_t at = HashOf(keys, row) & mask;
  // There is always a free bucket, and with these steps all are come by.
  for (uint64_t step = 1;; ++step) {
    const auto place = static_cast<int64_t>(at);
    if (IsEmpty(b.keys, place) || SameStretch(b.keys, place * key_width_, keys,
                                              row * key_width_, key_width_)) {
      return place;
    }
    at = (at + step) & mask;
  }
}

StatusOr<DenseTable::Buckets> DenseTable::Empty(int64_t count) const {
  Buckets b;
  b.count = count;
  HR_ASSIGN_OR_RETURN(Shape keys, Shape::Make({count, key_width_}));
  Shape values{count};
  values = values.Concat(value_shape_.rank() == 0 ? Shape{1} : value_shape_);
  HR_ASSIGN_OR_RETURN(values, Shape::Make(values.dims()));
  HR_ASSIGN_OR_RETURN(b.keys, Tensor::Allocate(key_, keys));
  HR_ASSIGN_OR_RETURN(b.values, Tensor::Allocate(value_, values));
  FillZero(b.values);
  for (int64_t i = 0; i < count; ++i) {
    CopyStretch(o_.empty_key, 0, b.keys, i * key_width_, key_width_);
  }
  return b;
}

void DenseTable::Put(Buckets* b, const Tensor& keys, const Tensor& values,
                     int64_t row) const {
  const int64_t place = PlaceOf(*b, keys, row);
  if (IsEmpty(b->keys, place)) {
    CopyStretch(keys, row * key_width_, b->keys, place * key_width_,
                key_width_);
    ++b->entries;
    ++b->taken;
  }
  CopyStretch(values, row * width_, b->values, place * width_, width_);
}

int64_t DenseTable::Enough(int64_t count, int64_t entries) const {
  while (static_cast<double>(entries) >
         static_cast<double>(count) * o_.most_full) {
    if (count > INT64_MAX / 4) break;
    count *= 2;
  }
  return count;
}

StatusOr<DenseTable::Buckets> DenseTable::Rearranged(const Buckets& from,
                                                     int64_t count) const {
  HR_ASSIGN_OR_RETURN(Buckets made, Empty(count));
  for (int64_t i = 0; i < from.count; ++i) {
    if (IsEmpty(from.keys, i) || IsDeleted(from.keys, i)) continue;
    Put(&made, from.keys, from.values, i);
  }
  return made;
}

int64_t DenseTable::size() const {
  MutexLock lock(mutex_);
  return buckets_.entries;
}

Status DenseTable::Find(const Tensor& keys, const Tensor& fallback,
                        Tensor& out) const {
  const int64_t n = RowsOf(keys, key_width_);
  const bool each = fallback.num_elements() == n * width_ && n != 1;
  if (!each && fallback.num_elements() != width_) {
    return InvalidArgument("Expected shape ", value_shape_, " or ",
                           Shape{1}.Concat(value_shape_),
                           " for default value, got ", fallback.shape());
  }
  HR_RETURN_IF_ERROR(CheckKeys(keys));
  MutexLock lock(mutex_);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = PlaceOf(buckets_, keys, i);
    if (IsEmpty(buckets_.keys, place)) {
      CopyStretch(fallback, each ? i * width_ : 0, out, i * width_, width_);
    } else {
      CopyStretch(buckets_.values, place * width_, out, i * width_, width_);
    }
  }
  return OkStatus();
}

Status DenseTable::Insert(const Tensor& keys, const Tensor& values) {
  const int apart = keys.rank() - o_.empty_key.rank();
  if (apart < 0 ||
      keys.shape().Sub(apart, keys.rank()) != o_.empty_key.shape()) {
    return InvalidArgument("Expected key shape ", o_.empty_key.shape(), " got ",
                           keys.shape());
  }
  const Shape wanted = keys.shape().Sub(0, apart).Concat(value_shape_);
  if (values.shape() != wanted) {
    return InvalidArgument("Expected shape ", wanted, " for value, got ",
                           values.shape());
  }
  HR_RETURN_IF_ERROR(CheckKeys(keys));
  const int64_t n = RowsOf(keys, key_width_);
  MutexLock lock(mutex_);
  const int64_t count = Enough(buckets_.count, buckets_.entries + n);
  // Deleted keys take room until buckets are filled anew; one stays free.
  if (count > buckets_.count || buckets_.taken + n >= buckets_.count) {
    HR_ASSIGN_OR_RETURN(buckets_, Rearranged(buckets_, count));
  }
  for (int64_t i = 0; i < n; ++i) Put(&buckets_, keys, values, i);
  return OkStatus();
}

Status DenseTable::Import(const Tensor& keys, const Tensor& values) {
  const int64_t rows = RowsOf(keys, key_width_);
  if (rows * key_width_ != keys.num_elements() ||
      values.num_elements() != rows * width_) {
    return InvalidArgument("Expected rows of keys of shape ",
                           o_.empty_key.shape(), " and of values of shape ",
                           value_shape_, ", got keys of shape ", keys.shape(),
                           " and values of shape ", values.shape());
  }
  int64_t entries = 0;
  for (int64_t i = 0; i < rows; ++i) {
    if (!IsEmpty(keys, i) && !IsDeleted(keys, i)) ++entries;
  }
  MutexLock lock(mutex_);
  int64_t count = IsBucketCount(rows) ? rows : buckets_.count;
  // Buckets that others filled may be fuller than these are to be.
  count = Enough(count, entries);
  Buckets from;
  from.keys = keys;
  from.values = values;
  from.count = rows;
  HR_ASSIGN_OR_RETURN(buckets_, Rearranged(from, count));
  return OkStatus();
}

Status DenseTable::Remove(const Tensor& keys) {
  HR_RETURN_IF_ERROR(CheckKeys(keys));
  const int64_t n = RowsOf(keys, key_width_);
  if (n * key_width_ != keys.num_elements()) {
    return InvalidArgument("Expected key shape ", o_.empty_key.shape(), " got ",
                           keys.shape());
  }
  MutexLock lock(mutex_);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t place = PlaceOf(buckets_, keys, i);
    if (IsEmpty(buckets_.keys, place)) continue;
    CopyStretch(o_.deleted_key, 0, buckets_.keys, place * key_width_,
                key_width_);
    --buckets_.entries;
  }
  return OkStatus();
}

Status DenseTable::Export(Tensor* keys, Tensor* values) const {
  MutexLock lock(mutex_);
  HR_ASSIGN_OR_RETURN(*keys, buckets_.keys.Clone());
  HR_ASSIGN_OR_RETURN(*values, buckets_.values.Clone());
  return OkStatus();
}

namespace {

template <bool kNamed>
Status MakeDenseTable(KernelContext& c) {
  const ResolvedOp& op = c.op();
  DenseTable::Options o;
  HR_ASSIGN_OR_RETURN(o.empty_key, c.input(0).Clone());
  HR_ASSIGN_OR_RETURN(o.deleted_key, c.input(1).Clone());
  o.value = op.type_attr("value_dtype");
  o.value_shape = op.attr<Shape>("value_shape");
  // Upstream takes an unknown rank for scalars.
  if (!o.value_shape.known_rank()) o.value_shape = Shape();
  o.buckets = op.int_attr("initial_num_buckets");
  o.most_full = static_cast<float>(op.float_attr("max_load_factor"));
  HandleData data{HandlePart{o.value, o.value_shape},
                  HandlePart{o.empty_key.dtype(), o.empty_key.shape()}};
  return HandTable(c, kNamed, std::move(data),
                   [&] { return DenseTable::Make(o); });
}

Status DenseTableRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(0), 1));
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(1), 1));
  c.set_output(0, Shape());
  Shape value = c.op().attr<Shape>("value_shape");
  if (!value.known_rank()) value = Shape();
  c.set_output_handle(
      0, {HandlePart{c.op().type_attr("value_dtype"), std::move(value)},
          HandlePart{c.op().type_attr("key_dtype"), c.input(0)}});
  return OkStatus();
}

template <bool kNamed>
OpBuilder DenseTableOp(const char* name) {
  OpBuilder b(name);
  b.Input("empty_key: key_dtype")
      .Input("deleted_key: key_dtype")
      .Output("table_handle: resource");
  if (kNamed) {
    b.Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Attr("use_node_name_sharing: bool = false")
        .NoGradient();
  }
  b.Attr("key_dtype: type")
      .Attr("value_dtype: type")
      .Attr("value_shape: shape = {}")
      .Attr("initial_num_buckets: int = 131072")
      .Attr("max_load_factor: float = 0.8")
      .Doc("Makes a handle of a table in one block of buckets.")
      .Stateful()
      .Shape(DenseTableRule)
      .Cpu(ComputeOwn<MakeDenseTable<kNamed>>);
  return b;
}

const OpRegistrar dense = DenseTableOp<true>("MutableDenseHashTableV2");
const OpRegistrar anonymous_dense =
    DenseTableOp<false>("AnonymousMutableDenseHashTable");

// The first version tells of no key that is deleted. Its kernel, as upstream's,
// asks for one.
Status RefuseDense(KernelContext& c) {
  return InvalidArgument("Unknown input name: deleted_key");
}
[[maybe_unused]] const bool kDenseByReference = RegisterLike(
    "MutableDenseHashTable", "MutableDenseHashTableV2", [](OpDef& def) {
      ByReference(def);
      def.inputs.pop_back();
      def.cpu_kernel = Compute<RefuseDense>;
    });

}  // namespace
}  // namespace headrace
