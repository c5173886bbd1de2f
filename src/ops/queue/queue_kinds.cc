// FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue, PriorityQueue, in two
// versions: which tuple of a queue is the next.
#include <algorithm>
#include <deque>
#include <map>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "op/op_like.h"
#include "ops/queue/queue_handle.h"
#include "ops/queue/tuple_queue.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

class FifoQueue : public TupleQueue {
 public:
  using TupleQueue::TupleQueue;

 protected:
  int64_t held() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int64_t>(tuples_.size());
  }
  void Put(Tuple tuple) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tuples_.push_back(std::move(tuple));
  }
  Tuple Take() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Tuple out = std::move(tuples_.front());
    tuples_.pop_front();
    return out;
  }
  void PutBack(Tuple tuple) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tuples_.push_front(std::move(tuple));
  }

 private:
  std::deque<Tuple> tuples_ ABSL_GUARDED_BY(mutex_);
};

// Upstream's order for a seed: a word of the generator names the place, and the
// last tuple moves there.
class ShuffleQueue : public TupleQueue {
 public:
  ShuffleQueue(const ResolvedOp& op, std::string name, std::vector<DType> types,
               std::vector<Shape> shapes)
      : TupleQueue("RandomShuffleQueue", std::move(name), std::move(types),
                   std::move(shapes), op.int_attr("capacity")),
        kept_(op.int_attr("min_after_dequeue")),
        seeds_(SeedsOf(op)),
        words_(SeededGenerator(op).now()) {}

  // Whether an op that asks for a shared queue gives it the same order.
  Status CheckSameOrder(const ResolvedOp& op, StringView shared) const {
    const int64_t kept = op.int_attr("min_after_dequeue");
    if (kept != kept_) {
      return InvalidArgument(shared, " has min_after_dequeue ", kept_,
                             " but requested min_after_dequeue was ", kept,
                             ".");
    }
    if (const auto seeds = SeedsOf(op); seeds != seeds_) {
      return InvalidArgument(shared, " has random seeds (", seeds_.first, ", ",
                             seeds_.second, ") but requested seeds are (",
                             seeds.first, ", ", seeds.second, ").");
    }
    return OkStatus();
  }

 protected:
  int64_t held() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int64_t>(tuples_.size());
  }
  int64_t kept() const override { return kept_; }
  void Put(Tuple tuple) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tuples_.push_back(std::move(tuple));
  }
  Tuple Take() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Tuple& place = tuples_[words_.Next() % tuples_.size()];
    std::swap(place, tuples_.back());
    Tuple out = std::move(tuples_.back());
    tuples_.pop_back();
    return out;
  }
  void PutBack(Tuple tuple) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tuples_.push_back(std::move(tuple));
  }

 private:
  static std::pair<int64_t, int64_t> SeedsOf(const ResolvedOp& op) {
    return {op.int_attr("seed"), op.int_attr("seed2")};
  }

  const int64_t kept_;
  const std::pair<int64_t, int64_t> seeds_;
  PhiloxWords words_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tuple> tuples_ ABSL_GUARDED_BY(mutex_);
};

// The least first component comes first, of equal ones the oldest.
class PriorityQueue : public TupleQueue {
 public:
  using TupleQueue::TupleQueue;

 protected:
  int64_t held() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int64_t>(tuples_.size());
  }
  void Put(Tuple tuple) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int64_t priority = tuple[0].scalar<int64_t>();
    // A multimap puts equal keys behind each other: the oldest stays first.
    tuples_.emplace(priority, std::move(tuple));
  }
  Tuple Take() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Tuple out = std::move(tuples_.begin()->second);
    tuples_.erase(tuples_.begin());
    return out;
  }
  void PutBack(Tuple tuple) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int64_t priority = tuple[0].scalar<int64_t>();
    // Before those of its priority, which came later.
    tuples_.emplace_hint(tuples_.lower_bound(priority), priority,
                         std::move(tuple));
  }

 private:
  std::multimap<int64_t, Tuple> tuples_ ABSL_GUARDED_BY(mutex_);
};

using Types = std::vector<DType>;
using Shapes = std::vector<Shape>;

// The components of the queue that an op makes.
struct Components {
  Types types;
  Shapes shapes;
};

// "FIFOQueue" of either version.
StringView KindOf(const ResolvedOp& op) {
  StringView kind = op.name();
  absl::ConsumeSuffix(&kind, "V2");
  return kind;
}

Components ComponentsOf(const ResolvedOp& op) {
  Components c{op.attr<Types>("component_types"), op.attr<Shapes>("shapes")};
  if (KindOf(op) == "PriorityQueue") {
    // The priority is a component that the op does not name.
    c.types.insert(c.types.begin(), DType::kInt64);
    c.shapes.insert(c.shapes.begin(), Shape());
  }
  return c;
}

Status QueueRule(ShapeContext& c) {
  const Components made = ComponentsOf(c.op());
  HandleData data;
  for (size_t i = 0; i < made.types.size(); ++i) {
    data.push_back({made.types[i], i < made.shapes.size()
                                       ? made.shapes[i]
                                       : Shape::UnknownRank()});
  }
  c.set_output(0, Shape());
  c.set_output_handle(0, std::move(data));
  return OkStatus();
}

Status CheckComponents(const ResolvedOp& op, const Components& made) {
  if (!made.shapes.empty() && made.shapes.size() != made.types.size()) {
    return InvalidArgument(op.name(), ": ", made.types.size(), " types but ",
                           made.shapes.size(), " shapes");
  }
  const bool partial = KindOf(op) == "PaddingFIFOQueue";
  for (const Shape& s : made.shapes) {
    if (partial ? !s.known_rank() : !s.fully_known()) {
      return InvalidArgument(op.name(), ": shapes must be ",
                             partial ? "of known rank" : "fully known",
                             ", got ", s);
    }
  }
  if (KindOf(op) == "RandomShuffleQueue") {
    const int64_t kept = op.int_attr("min_after_dequeue");
    const int64_t capacity = op.int_attr("capacity");
    if (kept < 0) {
      return InvalidArgument("min_after_dequeue ", kept, " must be >= 0");
    }
    if (capacity >= 0 && kept >= capacity) {
      return InvalidArgument("min_after_dequeue ", kept, " must be < capacity ",
                             capacity);
    }
  }
  return OkStatus();
}

std::shared_ptr<TupleQueue> NewQueue(const ResolvedOp& op, std::string name,
                                     Components made) {
  const int64_t capacity = op.int_attr("capacity");
  const StringView kind = KindOf(op);
  if (kind == "RandomShuffleQueue") {
    return std::make_shared<ShuffleQueue>(
        op, std::move(name), std::move(made.types), std::move(made.shapes));
  }
  if (kind == "PriorityQueue") {
    return std::make_shared<PriorityQueue>(kind, std::move(name),
                                           std::move(made.types),
                                           std::move(made.shapes), capacity);
  }
  return std::make_shared<FifoQueue>(kind, std::move(name),
                                     std::move(made.types),
                                     std::move(made.shapes), capacity);
}

// Shapes of which each may be the other's; what is known counts where they may
// be partial.
bool SameShapes(const TupleQueue& queue, const Shapes& shapes) {
  if (queue.kind() != "PaddingFIFOQueue") return queue.shapes() == shapes;
  return std::equal(shapes.begin(), shapes.end(), queue.shapes().begin(),
                    queue.shapes().end(), [](const Shape& a, const Shape& b) {
                      return a.CompatibleWith(b);
                    });
}

std::string TextOf(const Types& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, DType t) {
    absl::StrAppend(out, DTypeName(t));
  });
}

std::string TextOf(const Shapes& shapes) {
  return absl::StrCat("[",
                      absl::StrJoin(shapes, ", ",
                                    [](std::string* out, const Shape& s) {
                                      absl::StrAppend(out, s.ToString());
                                    }),
                      "]");
}

// InvalidArgument, in upstream's words, where the queue that has a shared name
// is not what `op` asks for.
Status CheckSame(const ResolvedOp& op, const Components& made,
                 const TupleQueue& queue) {
  if (queue.kind() != KindOf(op)) {
    return InvalidArgument("Expected ", queue.kind(), ", found ", op.name());
  }
  const std::string shared =
      absl::StrCat("Shared queue '", op.string_attr("shared_name"), "'");
  if (const int64_t asked = op.int_attr("capacity");
      queue.capacity() != asked) {
    return InvalidArgument(shared, " has capacity ", queue.capacity(),
                           " but requested capacity was ", asked);
  }
  if (auto* shuffled = dynamic_cast<const ShuffleQueue*>(&queue)) {
    HR_RETURN_IF_ERROR(shuffled->CheckSameOrder(op, shared));
  }
  if (queue.types() != made.types) {
    return InvalidArgument(
        shared, " has component types ", TextOf(queue.types()),
        " but requested component types were ", TextOf(made.types));
  }
  if (!SameShapes(queue, made.shapes)) {
    return InvalidArgument(
        shared, " has component shapes ", TextOf(queue.shapes()),
        " but requested component shapes were ", TextOf(made.shapes));
  }
  return OkStatus();
}

Status MakeQueue(KernelContext& c) {
  const ResolvedOp& op = c.op();
  Components made = ComponentsOf(op);
  HR_RETURN_IF_ERROR(CheckComponents(op, made));
  HR_ASSIGN_OR_RETURN(
      auto queue,
      MakeHandle<TupleQueue>(
          c, [&](std::string name) -> StatusOr<std::shared_ptr<TupleQueue>> {
            return NewQueue(op, std::move(name), made);
          }));
  return CheckSame(op, made, *queue);
}

OpBuilder QueueOp(const char* name, const char* types, const char* shapes,
                  const char* doc) {
  OpBuilder b(name);
  b.Output("handle: resource")
      .Attr(types)
      .Attr(shapes)
      .Attr("capacity: int = -1");
  if (StringView(name) == "RandomShuffleQueueV2") {
    b.Attr("min_after_dequeue: int = 0")
        .Attr("seed: int = 0")
        .Attr("seed2: int = 0");
  }
  b.Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Doc(doc)
      .Stateful()
      .Shape(QueueRule)
      .Cpu(ComputeOwn<MakeQueue>);
  return b;
}

const char kTypes[] = "component_types: list(type) >= 1";
const char kShapes[] = "shapes: list(shape) >= 0 = []";
const OpRegistrar fifo =
    QueueOp("FIFOQueueV2", kTypes, kShapes, "A queue, by name or a new one.");
const OpRegistrar padding =
    QueueOp("PaddingFIFOQueueV2", kTypes, kShapes,
            "A queue of tensors that are made alike when taken out together.");
const OpRegistrar shuffled =
    QueueOp("RandomShuffleQueueV2", kTypes, kShapes,
            "A queue that gives tuples in random order.");
const OpRegistrar sorted =
    QueueOp("PriorityQueueV2", "component_types: list(type) >= 0 = []",
            "shapes: list(shape) >= 0",
            "A queue that gives the tuple with the least first component.");

[[maybe_unused]] const bool kQueuesByReference[] = {
    RegisterLike("FIFOQueue", "FIFOQueueV2", ByReference),
    RegisterLike("PaddingFIFOQueue", "PaddingFIFOQueueV2", ByReference),
    RegisterLike("RandomShuffleQueue", "RandomShuffleQueueV2", ByReference),
    RegisterLike("PriorityQueue", "PriorityQueueV2", ByReference),
};

Status HandleAsReference(KernelContext& c) {
  HR_RETURN_IF_ERROR(
      ResourceAs<TupleQueue>(c.input(0), c.services().resources).status());
  c.set_output(0, c.input(0));
  return OkStatus();
}

HR_OP(FakeQueue)
    .Input("resource: resource")
    .Output("handle: Ref(string)")
    .Doc("A queue's handle for ops that take references.")
    .Stateful()
    .Shape(ReferenceShape)
    .Cpu(ComputeOwn<HandleAsReference>);

}  // namespace
}  // namespace headrace
