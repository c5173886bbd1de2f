// AddSparseToTensorsMap, AddManySparseToTensorsMap,
// TakeManySparseFromTensorsMap: sparse tensors that wait under numbers until a
// batch is made of them.
#include <algorithm>
#include <map>

#include "base/cancellation.h"
#include "base/mutex.h"
#include "op/resource.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

// Thread-safe.
class SparseTensorsMap : public Resource {
 public:
  std::string DebugString() const override { return "A SparseTensorsMap"; }
  int64_t Add(SparseInput tensor) {
    MutexLock lock(mutex_);
    kept_.emplace(next_, std::move(tensor));
    return next_++;
  }
  // All of them, which are gone then, or none and InvalidArgument.
  StatusOr<std::vector<SparseInput>> Take(absl::Span<const int64_t> numbers) {
    MutexLock lock(mutex_);
    std::vector<SparseInput> out;
    for (const int64_t n : numbers) {
      auto found = kept_.find(n);
      if (found == kept_.end()) {
        return InvalidArgument("Unable to find SparseTensor: ", n,
                               " in map: ", DebugString());
      }
      out.push_back(found->second);
    }
    for (const int64_t n : numbers) kept_.erase(n);
    return out;
  }

 private:
  Mutex mutex_;
  std::map<int64_t, SparseInput> kept_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

// By the op's container and shared_name, made where there is none.
StatusOr<std::shared_ptr<SparseTensorsMap>> MapFor(const KernelContext& c) {
  std::string container = c.op().string_attr("container");
  if (container.empty()) container = "localhost";
  return c.services().resources->LookUpOrCreate<SparseTensorsMap>(
      container, c.op().string_attr("shared_name"),
      []() -> StatusOr<std::shared_ptr<SparseTensorsMap>> {
        return std::make_shared<SparseTensorsMap>();
      });
}

// A copy, so that no view keeps more memory than it shows.
StatusOr<SparseInput> OwnCopy(const SparseInput& s) {
  SparseInput own = s;
  HR_ASSIGN_OR_RETURN(own.indices, s.indices.Clone());
  HR_ASSIGN_OR_RETURN(own.values, s.values.Clone());
  return own;
}

Status KeepOne(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const SparseInput s, SparseInputAt(c, 0));
  HR_RETURN_IF_ERROR(CheckInside(s));
  HR_ASSIGN_OR_RETURN(auto map, MapFor(c));
  HR_ASSIGN_OR_RETURN(SparseInput own, OwnCopy(s));
  *c.out<int64_t>(0) = map->Add(std::move(own));
  return OkStatus();
}

Status SparsePartsRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  return CheckRank(c.input(2), 1);
}
Status AddOneRule(ShapeContext& c) {
  c.set_output(0, Shape());
  return SparsePartsRule(c);
}
Status AddManyRule(ShapeContext& c) {
  c.set_output(0, Shape{Shape::kUnknown});
  return SparsePartsRule(c);
}

HR_OP(AddSparseToTensorsMap)
    .Input("sparse_indices: int64")
    .Input("sparse_values: T")
    .Input("sparse_shape: int64")
    .Output("sparse_handle: int64")
    .Attr("T: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("Keeps a sparse tensor, under a number.")
    .Stateful()
    .Shape(AddOneRule)
    .Cpu(Compute<KeepOne>);

// Rows [begin, end) without their first index.
StatusOr<SparseInput> RowGroup(const SparseInput& s, int64_t begin,
                               int64_t end) {
  SparseInput out;
  out.rank = s.rank - 1;
  out.count = end - begin;
  out.dims.assign(s.dims.begin() + 1, s.dims.end());
  HR_ASSIGN_OR_RETURN(
      out.indices, Tensor::Allocate(DType::kInt64, Shape{out.count, out.rank}));
  for (int64_t i = 0; i < out.count; ++i) {
    std::copy_n(s.row(begin + i) + 1, out.rank,
                out.indices.data<int64_t>() + i * out.rank);
  }
  HR_ASSIGN_OR_RETURN(out.values, s.values.Rows(begin, end).Clone());
  return out;
}

Status KeepRows(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const SparseInput s, SparseInputAt(c, 0));
  if (s.rank <= 1) {
    return InvalidArgument(
        "Rank of input SparseTensor should be > 1, but saw rank: ", s.rank);
  }
  HR_RETURN_IF_ERROR(CheckInside(s));
  if (!RowsAreSorted(s.indices)) {
    return InvalidArgument(c.op().name(), ": indices are out of order");
  }
  HR_ASSIGN_OR_RETURN(auto map, MapFor(c));
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{s.dims[0]}));
  int64_t at = 0;
  for (int64_t b = 0; b < s.dims[0]; ++b) {
    HR_RETURN_IF_ERROR(CheckStopOften());
    int64_t end = at;
    while (end < s.count && s.row(end)[0] == b) ++end;
    HR_ASSIGN_OR_RETURN(SparseInput group, RowGroup(s, at, end));
    c.out<int64_t>(0)[b] = map->Add(std::move(group));
    at = end;
  }
  return OkStatus();
}

HR_OP(AddManySparseToTensorsMap)
    .Input("sparse_indices: int64")
    .Input("sparse_values: T")
    .Input("sparse_shape: int64")
    .Output("sparse_handles: int64")
    .Attr("T: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("Keeps the rows of a sparse tensor, each under a number.")
    .Stateful()
    .Shape(AddManyRule)
    .Cpu(ComputeOwn<KeepRows>);

Status CheckKeptAlike(const KernelContext& c,
                      absl::Span<const SparseInput> parts) {
  for (const SparseInput& p : parts) {
    if (p.values.dtype() != c.op().type_attr("dtype")) {
      return InvalidArgument("Requested SparseTensor of type ",
                             DTypeName(c.op().type_attr("dtype")),
                             " but SparseTensor has type ",
                             DTypeName(p.values.dtype()));
    }
    if (p.rank != parts[0].rank) {
      return InvalidArgument("Inconsistent rank across SparseTensors: rank of ",
                             "SparseTensor[0] is ", parts[0].rank,
                             " but another one has rank ", p.rank);
    }
  }
  return OkStatus();
}

Status TakeKept(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto map, MapFor(c));
  const auto numbers = c.input(0).span<int64_t>();
  if (numbers.empty()) {
    return InvalidArgument("Must have at least 1 serialized SparseTensor, ",
                           "but input matrix has 0 rows");
  }
  HR_ASSIGN_OR_RETURN(const auto parts, map->Take(numbers));
  HR_RETURN_IF_ERROR(CheckKeptAlike(c, parts));
  const int rank = parts[0].rank;
  std::vector<int64_t> dims(rank + 1);
  dims[0] = static_cast<int64_t>(parts.size());
  int64_t total = 0;
  for (const SparseInput& p : parts) {
    total += p.count;
    for (int d = 0; d < rank; ++d)
      dims[d + 1] = std::max(dims[d + 1], p.dims[d]);
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{total, rank + 1}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{total}));
  int64_t at = 0;
  for (size_t b = 0; b < parts.size(); ++b) {
    const SparseInput& p = parts[b];
    for (int64_t i = 0; i < p.count; ++i) {
      int64_t* row = c.out<int64_t>(0) + (at + i) * (rank + 1);
      row[0] = static_cast<int64_t>(b);
      std::copy_n(p.row(i), rank, row + 1);
    }
    Tensor to = c.output(1).Rows(at, at + p.count);
    CopyElements(p.values, to);
    at += p.count;
  }
  c.set_output(2, Tensor::Vector<int64_t>(dims));
  return OkStatus();
}

Status TakeKeptRule(ShapeContext& c) {
  c.set_output(0, Shape{Shape::kUnknown, Shape::kUnknown});
  c.set_output(1, Shape{Shape::kUnknown});
  c.set_output(2, Shape{Shape::kUnknown});
  return CheckRank(c.input(0), 1);
}

HR_OP(TakeManySparseFromTensorsMap)
    .Input("sparse_handles: int64")
    .Output("sparse_indices: int64")
    .Output("sparse_values: dtype")
    .Output("sparse_shape: int64")
    .Attr("dtype: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("Kept sparse tensors as the rows of one; they are gone then.")
    .Stateful()
    .Shape(TakeKeptRule)
    .Cpu(ComputeOwn<TakeKept>);

}  // namespace
}  // namespace headrace
