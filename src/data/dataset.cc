#include "data/dataset.h"

#include <cstring>

#include "base/stack_room.h"

namespace headrace {
namespace {

// Datasets one behind the other. Their walks call one another, so each takes a
// part of the stack: 7.5 MB for 5,000, of the usual 8. Threads with a smaller
// stack refuse sooner (CheckStackRoom).
constexpr int kDeepest = 5000;
// Bytes that a walk takes of the stack for each dataset, at most.
constexpr size_t kStackPerDataset = 1500;

}  // namespace

Status DatasetIterator::Skip(PullContext& c, int64_t n, int64_t* skipped) {
  *skipped = 0;
  Element element;
  for (; *skipped < n; ++*skipped) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    bool end = false;
    HR_RETURN_IF_ERROR(Next(c, &element, &end));
    if (end) break;
  }
  return OkStatus();
}

Status DatasetIterator::NextRows(PullContext& c, int64_t n, Element* rows,
                                 int64_t* count, bool* done) {
  // The default for datasets that cannot do better than one element at a time.
  *done = false;
  return OkStatus();
}

StatusOr<ElementReaderPtr> Dataset::Reader(PullContext&) const {
  return FailedPrecondition(kind(), "Dataset does not support random access.");
}

DatasetPtr Dataset::Resolved(const PullContext& c) const {
  DatasetPtr dataset = shared_from_this();
  // What stands in may have a stand-in itself, as rewrites build on one
  // another.
  while (DatasetPtr other = dataset->StandIn(c)) dataset = std::move(other);
  return dataset;
}

int Dataset::depth() const {
  int depth = depth_.load(std::memory_order_relaxed);
  if (depth > 0) return depth;
  for (const DatasetPtr& input : inputs()) {
    depth = std::max(depth, input->depth());
  }
  // Two threads may count the same: datasets do not change.
  depth_.store(depth + 1, std::memory_order_relaxed);
  return depth + 1;
}

int64_t Dataset::Cardinality() const {
  // Counting twice gives the same number, so no lock is needed.
  int64_t n = cardinality_.load(std::memory_order_relaxed);
  if (n == kNotCounted) {
    n = Count();
    cardinality_.store(n, std::memory_order_relaxed);
  }
  return n;
}

Status Dataset::CheckDepth() const {
  if (depth() <= kDeepest) {
    return CheckStackRoom("a dataset", depth() * kStackPerDataset);
  }
  return ResourceExhausted("a dataset of ", depth(),
                           " datasets one behind the other is too deep: up to ",
                           kDeepest, " work");
}

StatusOr<IteratorPtr> Dataset::Iterate(PullContext& c,
                                       StringView parent) const {
  HR_RETURN_IF_ERROR(CheckDepth());
  if (DatasetPtr other = StandIn(c)) {
    // The stand-in checks its own depth.
    return other->Resolved(c)->Iterate(c, parent);
  }
  IteratorPtr iterator = NewIterator(absl::StrCat(parent, "::", kind()));
  if (c.shares && inputs().empty()) {
    iterator = c.shares->Of(*this, std::move(iterator));
  }
  HR_RETURN_IF_ERROR(iterator->Start(c));
  return iterator;
}

StatusOr<DatasetPtr> DatasetOf(const Tensor& t) {
  if (t.dtype() != DType::kVariant || t.rank() != 0 || !t.has_buffer()) {
    return InvalidArgument(
        "The dataset must be a scalar of dtype DT_VARIANT, but is ",
        t.Describe());
  }
  auto dataset =
      std::dynamic_pointer_cast<const Dataset>(t.scalar<Variant>().value());
  if (!dataset) {
    return InvalidArgument("The given variant tensor is no dataset: ",
                           t.scalar<Variant>().DebugString());
  }
  return dataset;
}

Tensor DatasetTensor(DatasetPtr dataset) {
  return Tensor::Scalar(Variant(std::move(dataset)));
}

Tensor RowOf(const Tensor& t, int64_t i) {
  return t.Rows(i, i + 1).WithShape(t.shape().Sub(1, t.rank()));
}

namespace {

// Asks for the beginning of what is copied next: rows lie anywhere, and the
// processor only guesses what follows once it has seen some.
void Fetch(const void* memory, size_t bytes) {
  // A page, by cache lines: behind it the processor has seen what comes.
  constexpr size_t kMost = 4096, kLine = 64;
  const char* at = static_cast<const char*>(memory);
  for (size_t i = 0; i < std::min(bytes, kMost); i += kLine) {
    __builtin_prefetch(at + i);
  }
}

Status StackComponent(absl::Span<const Element> elements, size_t k,
                      Tensor* out) {
  const Tensor& first = elements[0][k];
  const int64_t n = static_cast<int64_t>(elements.size());
  for (int64_t i = 1; i < n; ++i) {
    if (elements[i][k].shape() != first.shape()) {
      return InvalidArgument(
          "Cannot batch tensors with different shapes in component ", k,
          ". First element had shape ", first.shape(), " and element ", i,
          " had shape ", elements[i][k].shape(), ".");
    }
  }
  int64_t total;
  if (!MultiplyChecked(n, first.num_elements(), &total) ||
      first.rank() >= Shape::kMaxRank) {
    return InvalidArgument("a batch of ", n, " tensors of shape ",
                           first.shape(), " is too large");
  }
  HR_ASSIGN_OR_RETURN(
      *out, Tensor::Allocate(first.dtype(), Shape{n}.Concat(first.shape())));
  if (IsPlain(first.dtype())) {
    const size_t bytes = first.bytes();
    char* to = out->data<char>();
    for (int64_t i = 0; i < n; ++i, to += bytes) {
      const void* from = elements[i][k].raw();
      // Batches of single numbers: a constant size becomes one store.
      if (bytes == 8) {
        std::memcpy(to, from, 8);
      } else if (bytes != 0) {
        if (i + 1 < n) Fetch(elements[i + 1][k].raw(), bytes);
        std::memcpy(to, from, bytes);
      }
    }
    return OkStatus();
  }
  for (int64_t i = 0; i < n; ++i) {
    Tensor row = RowOf(*out, i);
    CopyElements(elements[i][k], row);
  }
  return OkStatus();
}

}  // namespace

Status StackElements(absl::Span<const Element> elements, Element* out) {
  const size_t width = elements[0].size();
  for (const Element& e : elements) {
    if (e.size() != width) {
      return InvalidArgument(
          "Cannot batch elements with different numbers of "
          "components: ",
          width, " and ", e.size());
    }
  }
  out->assign(width, Tensor());
  for (size_t k = 0; k < width; ++k) {
    HR_RETURN_IF_ERROR(StackComponent(elements, k, &(*out)[k]));
  }
  return OkStatus();
}

}  // namespace headrace
