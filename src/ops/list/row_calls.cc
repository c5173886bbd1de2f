#include "ops/list/row_calls.h"

#include <cstring>

namespace headrace {
namespace {

// Bytes of a list as it comes, whose elements turns may all write: of more a
// loop might need few.
constexpr int64_t kMostOwn = 64 << 20;

// What bound calls leave as their error; `n` is the list's size then.
enum RowError : uint32_t { kNoElement = 1, kNoMemory = 2 };
void Leave(BoundCall& c, RowError error) {
  c.error = error;
  c.n = RowsOf(c).size;
}

class OpenList : public ListOfRows {
 public:
  OpenList(Tensor list, const Shape& shape, BoundRows* rows)
      : list_(std::move(list)), shape_(shape), rows_(rows) {
    rows_->grow = [](BoundRows& r, int64_t n) {
      return static_cast<OpenList*>(r.owner)->Grow(n).ok();
    };
    rows_->owner = this;
  }

  Status Begin(bool writes) {
    const TensorList& list = this->list();
    const int64_t n = rows_->size = list.size();
    rows_->own = nullptr;
    rows_->room = 0;
    at_.assign(n, nullptr);
    rows_->at = at_.data();
    for (int64_t i = list.set_begin(); i < list.set_end(); ++i) {
      if (list.in_rows()) {
        at_[i] = static_cast<const char*>(list.rows().raw()) + i * rows_->bytes;
      } else {
        const Tensor& t = list.apart()[i - list.set_begin()];
        at_[i] = TensorList::IsSet(t) ? t.raw() : nullptr;
      }
    }
    return writes && n > 0 ? Grow(n) : OkStatus();
  }

  StatusOr<Tensor> Close() override {
    const TensorList& before = list();
    const int64_t n = rows_->size;
    int64_t own = 0, set = 0;
    for (int64_t i = 0; i < n; ++i) {
      own += IsOwn(i);
      set += rows_->at[i] != nullptr;
    }
    if (own == 0 && n == before.size()) return list_;
    // Rows that keep alive what is mostly unused would be none.
    if (own > 0 && set == n && rows_->room <= 2 * n) return InRows();
    auto list =
        std::make_shared<TensorList>(before.dtype(), before.element_shape());
    HR_RETURN_IF_ERROR(list->Resize(n));
    for (int64_t i = 0; i < n; ++i) {
      if (rows_->at[i] == nullptr) continue;
      HR_ASSIGN_OR_RETURN(
          Tensor t, IsOwn(i) ? own_.Rows(i, i + 1).WithShape(shape_).Clone()
                             : before.Item(i));
      HR_RETURN_IF_ERROR(list->Set(i, std::move(t)));
    }
    return ListTensor(std::move(list));
  }

 private:
  const TensorList& list() const {
    return *list_.scalar<Variant>().get<TensorList>();
  }
  static Tensor ListTensor(std::shared_ptr<TensorList> list) {
    return Tensor::Scalar<Variant>(Variant(std::move(list)));
  }
  bool IsOwn(int64_t i) const {
    return i < rows_->room && rows_->at[i] == rows_->own + i * rows_->bytes;
  }

  // The list as rows, all of which were set.
  Tensor InRows() {
    for (int64_t i = 0; i < rows_->size; ++i) {
      if (!IsOwn(i)) {
        std::memcpy(rows_->own + i * rows_->bytes, rows_->at[i], rows_->bytes);
      }
    }
    return ListTensor(std::make_shared<TensorList>(own_.Rows(0, rows_->size),
                                                   list().element_shape()));
  }

  Status Grow(int64_t n) {
    constexpr int64_t kLeast = 16;
    const int64_t room = std::max({n, kLeast, 2 * rows_->room});
    Shape all = shape_;
    all.InsertDim(0, rows_->room == 0 && n == rows_->size ? n : room);
    HR_ASSIGN_OR_RETURN(Tensor own, Tensor::Allocate(list().dtype(), all));
    char* to = static_cast<char*>(own.raw());
    at_.resize(all[0], nullptr);
    rows_->at = at_.data();
    for (int64_t i = 0; i < rows_->room; ++i) {
      if (!IsOwn(i)) continue;
      std::memcpy(to + i * rows_->bytes, at_[i], rows_->bytes);
      at_[i] = to + i * rows_->bytes;
    }
    own_ = std::move(own);
    rows_->own = to;
    rows_->room = all[0];
    return OkStatus();
  }

  const Tensor list_;
  const Shape shape_;
  BoundRows* const rows_;
  std::vector<const void*> at_;
  Tensor own_;  // [room, ...]
};

class RowKernel : public Kernel, public BindsRows {
 public:
  explicit RowKernel(const RowCall& call) : call_(call) {}
  Status Run(KernelContext& c) override { return call_.compute(c); }
  bool own_outputs() const override { return true; }

  Element element() const override { return call_.element; }
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    if (call_.shape_input >= 0) {
      const Tensor* asked = inputs[call_.shape_input].constant;
      if (asked == nullptr) return false;
      const StatusOr<Shape> shape = ShapeOfElements(*asked);
      if (!shape.ok() || *shape != output) return false;
    }
    // The kernel says what it thinks of others.
    if (call_.index_input >= 0 &&
        !inputs[call_.index_input].shape->IsScalar()) {
      return false;
    }
    call->run = call_.call;
    return true;
  }
  bool may_fail(absl::Span<const BoundInput>) const override {
    return call_.refusal != nullptr || call_.element.input >= 0;
  }
  Status Failure(const ResolvedOp& op, const BoundCall& call) const override {
    if (call.error == kNoMemory) {
      return ResourceExhausted("OOM when allocating a list of more than ",
                               call.n, " elements");
    }
    const int at = call_.index_input;
    return call_.refusal(at < 0 ? 0 : *static_cast<const int32_t*>(call.in[at]),
                         call.n);
  }

  bool Fits(const Tensor& tensor, DType dtype,
            const Shape& shape) const override {
    if (tensor.dtype() != DType::kVariant || tensor.rank() != 0) return false;
    const auto* list = tensor.scalar<Variant>().get<TensorList>();
    if (list == nullptr) return false;
    if (dtype == DType::kInvalid) return true;
    if (list->dtype() != dtype || list->max_size() != -1 ||
        !list->element_shape().CompatibleWith(shape) ||
        list->size() * shape.num_elements() *
                static_cast<int64_t>(DTypeSize(dtype)) >
            kMostOwn) {
      return false;
    }
    if (list->in_rows()) {
      return list->rows().shape().Sub(1, list->rows().rank()) == shape;
    }
    return std::all_of(list->apart().begin(), list->apart().end(),
                       [&](const Tensor& t) {
                         return !TensorList::IsSet(t) || t.shape() == shape;
                       });
  }
  StatusOr<std::unique_ptr<ListOfRows>> Open(const Tensor& list,
                                             const Shape& shape, bool writes,
                                             BoundRows* rows) const override {
    auto open = std::make_unique<OpenList>(list, shape, rows);
    HR_RETURN_IF_ERROR(open->Begin(writes));
    return std::unique_ptr<ListOfRows>(std::move(open));
  }

 private:
  const RowCall call_;
};

}  // namespace

std::unique_ptr<Kernel> MakeRowKernel(const RowCall& call) {
  return std::make_unique<RowKernel>(call);
}

void RefuseRow(BoundCall& c) { Leave(c, kNoElement); }
void LackMemory(BoundCall& c) { Leave(c, kNoMemory); }

}  // namespace headrace
