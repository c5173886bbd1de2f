// Barrier, BarrierInsertMany, BarrierTakeMany, BarrierClose, BarrierReadySize,
// BarrierIncompleteSize: tuples whose components come one by one, by key.
#include <limits>
#include <map>

#include "base/hash_map.h"
#include "op/op_like.h"
#include "op/waiting.h"
#include "ops/queue/await_change.h"
#include "ops/queue/queue_handle.h"
#include "ops/queue/tuple_queue.h"

namespace headrace {
namespace {

using Types = std::vector<DType>;
using Shapes = std::vector<Shape>;

// Thread-safe. Calls that wait end with CheckStop.
class Barrier : public Resource {
 public:
  struct Whole {
    int64_t batch = 0;  // which InsertMany the key came with first
    std::string key;
    Tuple parts;
  };

  Barrier(std::string name, Types types, Shapes shapes)
      : name_(std::move(name)),
        types_(std::move(types)),
        shapes_(std::move(shapes)) {}
  std::string DebugString() const override {
    return absl::StrCat("Barrier '", name_, "'");
  }
  const Types& types() const { return types_; }
  const Shapes& shapes() const { return shapes_; }

  // Component `at` of the keys. All of them are added, or none.
  Status Insert(const Tensor& keys, int at, const Tensor& values);
  // Waits for `n` whole tuples, those of early batches first.
  StatusOr<std::vector<Whole>> Take(int64_t n, bool allow_small, bool wait);
  void Close(bool cancel) {
    MutexLock lock(mutex_);
    closed_ = true;
    cancelled_ |= cancel;
    changed_.NotifyAll();
  }
  int64_t ready() const {
    MutexLock lock(mutex_);
    return static_cast<int64_t>(ready_.size());
  }
  int64_t incomplete() const {
    MutexLock lock(mutex_);
    return static_cast<int64_t>(partial_.size());
  }

 private:
  struct Partial {
    int64_t batch = 0;
    Tuple parts;  // without a buffer: not there yet
    size_t missing = 0;
  };
  Status CheckInsert(const Tensor& keys, int at, const Tensor& values) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What Take gives now: that many, 0 to go on waiting; OutOfRange at the end.
  StatusOr<int64_t> Givable(int64_t n, bool allow_small, bool wait) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const Types types_;
  const Shapes shapes_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // Batches are numbered from the least number on, as upstream's are.
  int64_t batches_ ABSL_GUARDED_BY(mutex_) =
      std::numeric_limits<int64_t>::min();
  HashMap<std::string, Partial> partial_ ABSL_GUARDED_BY(mutex_);
  std::multimap<int64_t, Whole> ready_ ABSL_GUARDED_BY(mutex_);
};

Status Barrier::CheckInsert(const Tensor& keys, int at,
                            const Tensor& values) const {
  if (cancelled_) return Cancelled("Barrier ", name_, " is closed.");
  if (!shapes_.empty()) {
    const Shape have = values.shape().Sub(1, values.rank());
    if (!shapes_[at].CompatibleWith(have)) {
      return InvalidArgument("Shape mismatch in tuple component ", at,
                             ". Expected ", shapes_[at], ", got ", have);
    }
  }
  HashSet<StringView> seen;
  for (const std::string& key : keys.span<std::string>()) {
    if (!seen.insert(StringView(key)).second) {
      return InvalidArgument("Key ", key, " already has a value for component ",
                             at, " in barrier ", name_);
    }
    auto found = partial_.find(key);
    if (found == partial_.end()) {
      if (!closed_) continue;
      return Cancelled(
          "Barrier ", name_,
          " is closed, but attempted to insert a brand new key: ", key);
    }
    if (found->second.parts[at].has_buffer()) {
      return InvalidArgument("Key ", key, " already has a value for component ",
                             at, " in barrier ", name_);
    }
  }
  return OkStatus();
}

Status Barrier::Insert(const Tensor& keys, int at, const Tensor& values) {
  const Shape row = values.shape().Sub(1, values.rank());
  Tuple rows;
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    // A view would keep the whole batch alive as long as one of its rows waits.
    HR_ASSIGN_OR_RETURN(Tensor copy, values.Rows(i, i + 1).Clone());
    rows.push_back(copy.WithShape(row));
  }
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(CheckInsert(keys, at, values));
  bool fresh = false;
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const std::string& key = keys.data<std::string>()[i];
    auto [it, added] = partial_.try_emplace(key);
    Partial& p = it->second;
    if (added) {
      p.batch = batches_;
      p.parts.resize(types_.size());
      p.missing = types_.size();
      fresh = true;
    }
    p.parts[at] = std::move(rows[i]);
    if (--p.missing > 0) continue;
    ready_.emplace(p.batch, Whole{p.batch, key, std::move(p.parts)});
    partial_.erase(it);
  }
  if (fresh) ++batches_;
  changed_.NotifyAll();
  return OkStatus();
}

StatusOr<int64_t> Barrier::Givable(int64_t n, bool allow_small,
                                   bool wait) const {
  const auto ready = static_cast<int64_t>(ready_.size());
  if (ready >= n) return n;
  if (!closed_) return 0;
  // What is incomplete may still become whole, unless that was given up.
  const int64_t coming = cancelled_ ? 0 : static_cast<int64_t>(partial_.size());
  if (allow_small) {
    if (wait && coming > 0) return 0;
    if (ready > 0) return ready;
  } else if (ready + coming >= n) {
    return 0;
  }
  return OutOfRange("Barrier '", name_,
                    "' is closed and has insufficient elements (requested ", n,
                    ", total size ", ready + coming, ")");
}

StatusOr<std::vector<Barrier::Whole>> Barrier::Take(int64_t n, bool allow_small,
                                                    bool wait) {
  MutexLock lock(mutex_);
  int64_t given = 0;
  while (n > 0) {
    HR_ASSIGN_OR_RETURN(given, Givable(n, allow_small, wait));
    if (given > 0) break;
    HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
  }
  std::vector<Whole> out;
  for (int64_t i = 0; i < given; ++i) {
    out.push_back(std::move(ready_.begin()->second));
    ready_.erase(ready_.begin());
  }
  return out;
}

Status CheckBarrier(const ResolvedOp& op, const Types& types,
                    const Shapes& shapes) {
  if (!shapes.empty() && shapes.size() != types.size()) {
    return InvalidArgument("Barrier: ", types.size(), " types but ",
                           shapes.size(), " shapes");
  }
  for (const Shape& s : shapes) {
    if (!s.fully_known()) {
      return InvalidArgument("Barrier: shapes must be fully known, got ", s);
    }
  }
  if (op.int_attr("capacity") != -1) {
    return InvalidArgument(
        "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier "
        "through a queue to enforce a limited capacity.");
  }
  return OkStatus();
}

Status MakeBarrier(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const auto& types = op.attr<Types>("component_types");
  const auto& shapes = op.attr<Shapes>("shapes");
  HR_RETURN_IF_ERROR(CheckBarrier(op, types, shapes));
  HR_ASSIGN_OR_RETURN(
      auto barrier,
      MakeHandle<Barrier>(
          c, [&](std::string name) -> StatusOr<std::shared_ptr<Barrier>> {
            return std::make_shared<Barrier>(std::move(name), types, shapes);
          }));
  // A shared name may have been taken before.
  if (barrier->types() != types || barrier->shapes() != shapes) {
    return InvalidArgument("Shared barrier '", op.string_attr("shared_name"),
                           "' is another one (", barrier->DebugString(),
                           ") than ", op.name(), " asks for");
  }
  return OkStatus();
}

HR_OP(Barrier)
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Doc("Tuples whose components come one by one, under keys.")
    .Stateful()
    .Shape(ReferenceShape)
    .Cpu(ComputeOwn<MakeBarrier>);

StatusOr<std::shared_ptr<Barrier>> BarrierOf(const KernelContext& c) {
  return ResourceAs<Barrier>(c.input(0), c.services().resources);
}

Status InsertMany(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto barrier, BarrierOf(c));
  const int64_t at = c.op().int_attr("component_index");
  const auto count = static_cast<int64_t>(barrier->types().size());
  if (at < 0 || at >= count) {
    return InvalidArgument("The component ID is out of range ", at,
                           " > num_components (= ", count, ")");
  }
  if (c.input(2).dtype() != barrier->types()[at]) {
    return InvalidArgument("Type mismatch in tuple component ", at,
                           ". Expected ", DTypeName(barrier->types()[at]),
                           ", got ", DTypeName(c.input(2).dtype()));
  }
  return barrier->Insert(c.input(1), static_cast<int>(at), c.input(2));
}

Status InsertManyRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  HR_RETURN_IF_ERROR(CheckRankAtLeast(c.input(2), 1));
  if (!c.input(2).known_rank()) return OkStatus();
  return MergeShapes(c.input(1), c.input(2).Sub(0, 1)).status();
}

HR_OP(BarrierInsertMany)
    .Input("handle: Ref(string)")
    .Input("keys: string")
    .Input("values: T")
    .Attr("T: type")
    .Attr("component_index: int")
    .Doc("Gives keys one component of their tuples.")
    .Shape(InsertManyRule)
    .Cpu(Compute<InsertMany>);

// Component i of all tuples as one tensor, output i + 2.
Status SetComponent(KernelContext& c, absl::Span<const Barrier::Whole> taken,
                    int i, const Shapes& shapes) {
  Shape shape = taken.empty() ? (shapes.empty() ? Shape() : shapes[i])
                              : taken[0].parts[i].shape();
  const Shape row = shape;
  shape.InsertDim(0, static_cast<int64_t>(taken.size()));
  HR_RETURN_IF_ERROR(c.Allocate(i + 2, shape));
  for (size_t k = 0; k < taken.size(); ++k) {
    const Tensor& part = taken[k].parts[i];
    if (part.shape() != row) {
      return InvalidArgument("Barrier: tuples of different shapes, ", row,
                             " and ", part.shape(), ", in one batch");
    }
    const auto at = static_cast<int64_t>(k);
    Tensor to = c.output(i + 2).Rows(at, at + 1).WithShape(row);
    CopyElements(part, to);
  }
  return OkStatus();
}

Status TakeMany(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto barrier, BarrierOf(c));
  const ResolvedOp& op = c.op();
  if (op.attr<Types>("component_types") != barrier->types()) {
    return InvalidArgument(barrier->DebugString(),
                           " holds components of other types");
  }
  if (op.int_attr("timeout_ms") != -1) {
    return InvalidArgument("Timeout not supported yet.");
  }
  const int64_t n = c.input(1).scalar<int32_t>();
  if (n < 0) {
    return InvalidArgument("BarrierTakeMany: num_elements must be >= 0, got ",
                           n);
  }
  HR_ASSIGN_OR_RETURN(auto taken,
                      barrier->Take(n, op.bool_attr("allow_small_batch"),
                                    op.bool_attr("wait_for_incomplete")));
  const Shape size{static_cast<int64_t>(taken.size())};
  HR_RETURN_IF_ERROR(c.Allocate(0, size));
  HR_RETURN_IF_ERROR(c.Allocate(1, size));
  for (size_t k = 0; k < taken.size(); ++k) {
    c.out<int64_t>(0)[k] = taken[k].batch;
    c.out<std::string>(1)[k] = taken[k].key;
  }
  for (int i = 0; i + 2 < c.num_outputs(); ++i) {
    HR_RETURN_IF_ERROR(SetComponent(c, taken, i, barrier->shapes()));
  }
  return OkStatus();
}

Status TakeManyRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  c.set_output(0, Shape{Shape::kUnknown});
  c.set_output(1, Shape{Shape::kUnknown});
  return OkStatus();
}

HR_OP(BarrierTakeMany)
    .Input("handle: Ref(string)")
    .Input("num_elements: int32")
    .Output("indices: int64")
    .Output("keys: string")
    .Output("values: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("allow_small_batch: bool = false")
    .Attr("wait_for_incomplete: bool = false")
    .Attr("timeout_ms: int = -1")
    .Doc("Takes whole tuples, when there are enough.")
    .Traits({kMayWait, kMayBeTried})
    .Shape(TakeManyRule)
    .Cpu(ComputeOwn<TakeMany>);

Status CloseBarrier(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto barrier, BarrierOf(c));
  barrier->Close(c.op().bool_attr("cancel_pending_enqueues"));
  return OkStatus();
}

HR_OP(BarrierClose)
    .Input("handle: Ref(string)")
    .Attr("cancel_pending_enqueues: bool = false")
    .Doc("No new keys may come.")
    .Shape(NoOutputs)
    .Cpu(Compute<CloseBarrier>);

template <int64_t (Barrier::*count)() const>
Status CountBarrier(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto barrier, BarrierOf(c));
  *c.out<int32_t>(0) = static_cast<int32_t>((barrier.get()->*count)());
  return OkStatus();
}

HR_OP(BarrierReadySize)
    .Input("handle: Ref(string)")
    .Output("size: int32")
    .Doc("How many tuples are whole.")
    .Shape(ScalarShape)
    .Cpu(Compute<CountBarrier<&Barrier::ready>>);

HR_OP(BarrierIncompleteSize)
    .Input("handle: Ref(string)")
    .Output("size: int32")
    .Doc("How many tuples lack components.")
    .Shape(ScalarShape)
    .Cpu(Compute<CountBarrier<&Barrier::incomplete>>);

}  // namespace
}  // namespace headrace
