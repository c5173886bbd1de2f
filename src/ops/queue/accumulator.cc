#include "ops/queue/accumulator.h"

namespace headrace {
namespace {

using AccumulatedTypes = TypeList<float, double, half>;

// to += from
void AddTo(const Tensor& from, Tensor& to) {
  DispatchDType(to.dtype(), AccumulatedTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto x = from.span<T>();
    auto y = to.span<T>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = T(y[i] + x[i]);
  });
}

void DivideBy(int64_t n, Tensor& t) {
  DispatchDType(t.dtype(), AccumulatedTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& x : t.span<T>()) x = T(x / static_cast<T>(static_cast<float>(n)));
  });
}

Shape RowShape(const Tensor& rows) { return rows.shape().Sub(1, rows.rank()); }

}  // namespace

int64_t Accumulator::count() const {
  MutexLock lock(mutex_);
  return count_;
}

int64_t Accumulator::dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

class Accumulator::Place : public WaitingPlace {
 public:
  Place(std::shared_ptr<Accumulator> of, std::function<bool()> holds)
      : holds(std::move(holds)), of_(std::move(of)) {}
  ~Place() override {
    MutexLock lock(of_->mutex_);
    std::erase(of_->places_, this);
  }
  void Await(std::function<void()> to_call) override {
    {
      MutexLock lock(of_->mutex_);
      if (!holds()) {
        ready = std::move(to_call);
        return;
      }
    }
    to_call();
  }

  const std::function<bool()> holds;
  std::function<void()> ready;

 private:
  const std::shared_ptr<Accumulator> of_;
};

Status Accumulator::AwaitThat(std::function<bool()> holds) {
  while (!holds()) {
    if (auto* const left = WaitRefusal::Place()) {
      if (*left) return WouldWait();  // it is still the same
      auto made = std::make_shared<Place>(shared_from_this(), std::move(holds));
      places_.push_back(made.get());
      *left = std::move(made);
      return WouldWait();
    }
    HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
  }
  return OkStatus();
}

void Accumulator::TellWhoWaits() {
  std::vector<std::function<void()>> told;
  {
    MutexLock lock(mutex_);
    for (Place* place : places_) {
      if (!place->ready || !place->holds()) continue;
      told.push_back(std::exchange(place->ready, nullptr));
    }
  }
  changed_.NotifyAll();
  for (const auto& ready : told) ready();
}

void Accumulator::SetGlobalStep(int64_t step) {
  {
    MutexLock lock(mutex_);
    global_step_ = step;
  }
  TellWhoWaits();
}

Status Accumulator::AwaitEnd(int64_t local_step) {
  MutexLock lock(mutex_);
  return AwaitThat([this, local_step]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return local_step != global_step_;
  });
}

Status DenseAccumulator::Add(int64_t local_step, const Tensor& gradient) {
  return Apply(
      local_step, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Status {
        const Shape& wanted = sum_.has_buffer() ? sum_.shape() : shape();
        if (!wanted.CompatibleWith(gradient.shape())) {
          return InvalidArgument("Shape mismatch: expected ", wanted, ", got ",
                                 gradient.shape());
        }
        if (counted() > 0) {
          AddTo(gradient, sum_);
          return OkStatus();
        }
        // A buffer of its own: later gradients are added to it.
        HR_ASSIGN_OR_RETURN(sum_, gradient.Clone());
        return OkStatus();
      });
}

StatusOr<Tensor> DenseAccumulator::Take(int64_t required) {
  Tensor out;
  HR_RETURN_IF_ERROR(TakeWhenEnough(
      required, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Status {
        out = sum_;
        sum_ = Tensor(dtype(), out.shape());
        if (mean()) DivideBy(counted(), out);
        return OkStatus();
      }));
  return out;
}

Status SparseAccumulator::Check(const Tensor& indices, const Tensor& values,
                                const Tensor& shape) const {
  if (values.rank() < 1) {
    return InvalidArgument("Values cannot be 0-dimensional.");
  }
  if (indices.num_elements() != values.dim(0)) {
    return InvalidArgument("Expected ", indices.num_elements(),
                           " non-empty input values, got ", values.dim(0));
  }
  // The shape that was said may leave out the last dimensions, rows that are
  // there may not.
  const bool said = !known_.known_rank();
  const Shape& known = said ? this->shape() : known_;
  if (known.known_rank() &&
      (said ? known.rank() > values.rank() : known.rank() != values.rank())) {
    return InvalidArgument("Shape mismatch: expected values rank ",
                           known.rank(), ", got ", values.rank());
  }
  for (int d = 1; known.known_rank() && d < known.rank(); ++d) {
    if (known[d] >= 0 && known[d] != values.dim(d)) {
      return InvalidArgument("Shape mismatch: expected values dim ", d,
                             " to be ", known[d], ", got ", values.dim(d));
    }
  }
  int64_t limit = known.known_rank() && known.rank() > 0 ? known[0] : -1;
  if (shape.num_elements() > 0) {
    if (shape.num_elements() != values.rank()) {
      return InvalidArgument("Shape mismatch: expected shape rank ",
                             values.rank(), ", got ", shape.num_elements());
    }
    for (int d = 0; d < values.rank(); ++d) {
      const int64_t size = shape.IntAt(d);
      const int64_t want = d > 0 ? values.dim(d) : limit;
      if (size < 0 || (want >= 0 && size != want)) {
        return InvalidArgument("Shape mismatch: expected shape dim ", d,
                               " to be ", want, ", got ", size);
      }
    }
    limit = shape.IntAt(0);
  }
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t at = indices.IntAt(i);
    if (at < 0 || (limit >= 0 && at >= limit)) {
      return InvalidArgument("Shape mismatch: index of slice ", i,
                             " exceeded limits of shape; index is ", at,
                             " exceeded ", limit);
    }
  }
  return OkStatus();
}

Status SparseAccumulator::AddRows(const Tensor& indices, const Tensor& values) {
  const Shape row_shape = RowShape(values);
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    HR_RETURN_IF_ERROR(CheckStopOften());
    Row& row = rows_[indices.IntAt(i)];
    const Tensor from = values.Rows(i, i + 1).WithShape(row_shape);
    if (row.count++ > 0) {
      AddTo(from, row.sum);
      continue;
    }
    HR_ASSIGN_OR_RETURN(row.sum, from.Clone());
  }
  return OkStatus();
}

Status SparseAccumulator::Add(int64_t local_step, const Tensor& indices,
                              const Tensor& values, const Tensor& shape) {
  return Apply(local_step,
               [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Status {
                 if (counted() == 0) {
                   rows_.clear();
                   known_ = Shape::UnknownRank();
                 }
                 HR_RETURN_IF_ERROR(Check(indices, values, shape));
                 HR_RETURN_IF_ERROR(AddRows(indices, values));
                 known_ = values.shape();
                 known_.set_dim(
                     0, shape.num_elements() > 0 ? shape.IntAt(0)
                        : this->shape().known_rank() && this->shape().rank() > 0
                            ? this->shape()[0]
                            : Shape::kUnknown);
                 return OkStatus();
               });
}

StatusOr<SparseAccumulator::Rows> SparseAccumulator::Take(int64_t required) {
  Rows out;
  HR_RETURN_IF_ERROR(TakeWhenEnough(
      required, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Status {
        const auto n = static_cast<int64_t>(rows_.size());
        Shape all = known_;
        all.set_dim(0, n);
        HR_ASSIGN_OR_RETURN(out.indices,
                            Tensor::Allocate(DType::kInt64, Shape{n}));
        HR_ASSIGN_OR_RETURN(out.values, Tensor::Allocate(dtype(), all));
        int64_t at = 0;
        for (auto& [index, row] : rows_) {
          if (mean()) DivideBy(row.count, row.sum);
          out.indices.data<int64_t>()[at] = index;
          Tensor to = out.values.Rows(at, at + 1).WithShape(row.sum.shape());
          CopyElements(row.sum, to);
          ++at;
        }
        out.shape = Tensor::Vector<int64_t>(known_.dims());
        rows_.clear();
        return OkStatus();
      }));
  return out;
}

}  // namespace headrace
