// ParallelMapDataset: a function of every element, several at a time and ahead
// of who reads. MapAndBatchDataset: that and a batch.
#include <chrono>
#include <deque>
#include <thread>

#include "base/guard.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/threads.h"
#include "data/transform/batch.h"
#include "op/op_like.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

// Where the number of calls is left to us, workers take as many elements at a
// time as make about this much work, so that cheap functions do not spend their
// time on locks (a microsecond or two a chunk); 64 at most, so that little is
// ahead when a walk ends or is saved.
constexpr std::chrono::microseconds kWork{100};
constexpr int64_t kMostTaken = 64;
// Who waits looks this often whether to stop.
constexpr std::chrono::milliseconds kLooksForStop{50};

// Whether elements come in the order of the input; kOpen: as the options say.
enum class Order { kOpen, kKept, kAny };

class ParallelMapDataset : public MappedDataset {
 public:
  ParallelMapDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f,
                     int64_t parallel, Order order)
      : MappedDataset(std::move(spec), std::move(input), std::move(f)),
        parallel_(parallel),
        order_(order) {}
  StringView kind() const override { return "ParallelMapV2"; }

  class Iterator : public MapIterator {
   public:
    Iterator(const ParallelMapDataset* d, std::string prefix)
        : MapIterator(d, std::move(prefix)),
          parallel_(d->parallel_),
          order_(d->order_) {}
    ~Iterator() override { Stop(); }
    Status Next(PullContext& c, Element* out, bool* end) override;
    Status SaveAhead(PullContext& c, StateWriter& w,
                     std::vector<Pulled>* ahead) override;
    Status RestoreAhead(PullContext& c, const StateReader& r,
                        std::vector<Pulled> ahead) override;

   private:
    // Elements that one worker took at once: before and after the function.
    struct Chunk {
      std::vector<Element> elements;
      std::vector<Status> errors;  // of the elements, or the last: the input's
      size_t next = 0;
      bool done = false;  // the iterator's mutex guards it
    };
    using ChunkPtr = std::shared_ptr<Chunk>;

    bool tuned() const { return parallel_ < 0; }
    void Begin(PullContext& c) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
    void Stop();
    // What each thread does.
    void Work(PullContext& c);
    // One chunk, on the reader: where there is no thread to be had.
    void WorkAlone(PullContext& c);
    // False when there is nothing more to do.
    bool AwaitRoom();
    bool WorkOnce(PullContext& c, CapturedFunction::Run& run);
    // Ends the walk with an error.
    void GiveUp(Status s);
    // Takes elements of the input into a new chunk at the end of the queue;
    // null at the end, or when asked to stop.
    ChunkPtr Take(PullContext& c);
    void Map(CapturedFunction::Run& run, Chunk& chunk);
    void Finish(const ChunkPtr& chunk);
    ChunkPtr FindDone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

    const int64_t parallel_;
    const Order order_;
    std::vector<std::thread> threads_;
    ChunkPtr current_;        // only the reader's
    FunctionRunPtr own_run_;  // the reader's, without threads
    Mutex input_mutex_;       // one thread pulls at a time
    Mutex mutex_ ABSL_ACQUIRED_AFTER(input_mutex_);
    CondVar room_, done_;
    int64_t workers_ ABSL_GUARDED_BY(mutex_) = 1;
    bool ordered_ ABSL_GUARDED_BY(mutex_) = true;
    std::deque<ChunkPtr> chunks_ ABSL_GUARDED_BY(mutex_);
    int64_t taken_at_once_ ABSL_GUARDED_BY(mutex_) = 1;
    int64_t outstanding_ ABSL_GUARDED_BY(mutex_) = 0;  // chunks not done
    bool stop_ ABSL_GUARDED_BY(mutex_) = false;
    bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
    bool begun_ ABSL_GUARDED_BY(mutex_) = false;
    Status broken_
        ABSL_GUARDED_BY(mutex_);  // what ended the walk before its time
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t parallel_;  // negative: as many as there are threads
  const Order order_;
};

void ParallelMapDataset::Iterator::Begin(PullContext& c) {
  begun_ = true;
  // Iteration ends a walk with threads in the background, since joining them
  // may take long.
  *c.has_threads = true;
  workers_ = parallel_;
  if (tuned()) {
    workers_ = c.options.threads > 0 ? c.options.threads : NumThreads();
  }
  ordered_ = order_ == Order::kKept ||
             (order_ == Order::kOpen && c.options.deterministic);
  for (int64_t i = 0; i < workers_; ++i) {
    threads_.emplace_back();  // a thread that runs needs its place at once
    StatusOr<std::thread> thread = StartThread([this, &c] { Work(c); });
    if (!thread.ok()) {  // fewer, or the reader alone, do it all
      threads_.pop_back();
      break;
    }
    threads_.back() = *std::move(thread);
  }
}

void ParallelMapDataset::Iterator::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  room_.NotifyAll();
  // Joined without the lock: a worker needs mutex_ to see stop_.
  for (std::thread& t : threads_) t.join();
  threads_.clear();
  MutexLock lock(mutex_);
  // Restore comes here too, and what Begin starts afterwards must run.
  stop_ = false;
}

ParallelMapDataset::Iterator::ChunkPtr ParallelMapDataset::Iterator::Take(
    PullContext& c) {
  MutexLock pulling(input_mutex_);
  auto chunk = std::make_shared<Chunk>();
  int64_t wanted;
  {
    MutexLock lock(mutex_);
    if (stop_ || input_ended_) return nullptr;
    wanted = taken_at_once_;
    // The place in the queue is taken together with the elements, under the
    // input's lock: so chunks lie in the input's order.
    chunks_.push_back(chunk);
    ++outstanding_;
  }
  // Everything that is pulled has its place before: an error that got lost
  // where memory ends would look like the end of the input to the next pull.
  bool end = false;
  Status room = Guarded("a parallel map", [&] {
    while (static_cast<int64_t>(chunk->elements.size()) < wanted && !end) {
      chunk->errors.emplace_back();
      chunk->elements.emplace_back();
      Status s = CheckStop();
      if (s.ok()) {
        s = Guarded("the input of a parallel map", [&] {
          return NextInput(c, &chunk->elements.back(), &end);
        });
      }
      if (end && s.ok()) {
        chunk->elements.pop_back();
        break;
      }
      chunk->errors[chunk->elements.size() - 1] = s;
      if (!s.ok()) break;
    }
    return OkStatus();
  });
  chunk->errors.resize(chunk->elements.size());
  if (!room.ok()) GiveUp(std::move(room));
  const bool cancelled = c.token->cancelled();
  MutexLock lock(mutex_);
  // Once cancelled, CheckStop fails for every further element: the workers
  // would fill the queue with that error.
  input_ended_ = input_ended_ || end || cancelled;
  if (input_ended_) room_.NotifyAll();
  if (chunk->elements.empty()) {
    chunks_.pop_back();  // (others take theirs behind `pulling`)
    --outstanding_;
    done_.NotifyAll();
    return nullptr;
  }
  return chunk;
}

void ParallelMapDataset::Iterator::Map(CapturedFunction::Run& run,
                                       Chunk& chunk) {
  for (size_t i = 0; i < chunk.elements.size(); ++i) {
    if (!chunk.errors[i].ok()) continue;
    Element args = std::move(chunk.elements[i]);
    chunk.elements[i].clear();
    // Nothing may be thrown past this: the reader waits for the chunk.
    chunk.errors[i] = Guarded("the function of a map", [&] {
      const Status s = run(&args, &chunk.elements[i]);
      return s.ok() ? s : Failed(s);
    });
  }
}

void ParallelMapDataset::Iterator::Finish(const ChunkPtr& chunk) {
  MutexLock lock(mutex_);
  chunk->done = true;
  --outstanding_;
  done_.NotifyAll();
}

void ParallelMapDataset::Iterator::Work(PullContext& c) {
  const StopScope scope(c.token);
  // Calls on one thread run on it: the elements are what is parallel.
  ScopedThreadLimit one(1);
  Status s = Guarded("a parallel map", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(const FunctionRunPtr run, dataset().f()->Begin(c));
    // A run is a worker's own: its frame is used again by call after call, and
    // two threads must not share it.
    while (AwaitRoom() && WorkOnce(c, *run)) {
    }
    return OkStatus();
  });
  if (!s.ok()) GiveUp(std::move(s));
}

void ParallelMapDataset::Iterator::WorkAlone(PullContext& c) {
  Status s = Guarded("a parallel map", [&]() -> Status {
    if (!own_run_) {
      HR_ASSIGN_OR_RETURN(own_run_, dataset().f()->Begin(c));
    }
    WorkOnce(c, *own_run_);
    return OkStatus();
  });
  if (!s.ok()) GiveUp(std::move(s));
}

void ParallelMapDataset::Iterator::GiveUp(Status s) {
  MutexLock lock(mutex_);
  broken_ = std::move(s);
  input_ended_ = true;
  done_.NotifyAll();
  room_.NotifyAll();
}

bool ParallelMapDataset::Iterator::AwaitRoom() {
  MutexLock lock(mutex_);
  // One chunk at work and one done for each worker: memory is bounded, and a
  // slow reader lets them rest.
  const size_t most = static_cast<size_t>(2 * workers_);
  while (!stop_ && !input_ended_ && chunks_.size() >= most) room_.Wait(mutex_);
  return !stop_ && !input_ended_;
}

bool ParallelMapDataset::Iterator::WorkOnce(PullContext& c,
                                            CapturedFunction::Run& run) {
  ChunkPtr chunk = Take(c);
  if (!chunk) return false;
  const Clock::time_point begin = Clock::now();
  Map(run, *chunk);
  const auto took = Clock::now() - begin;
  const int64_t n = static_cast<int64_t>(chunk->elements.size());
  Finish(chunk);
  if (!tuned()) return true;
  MutexLock lock(mutex_);
  // Twice as many while they take less than half of the aim, half as many above
  // four times: between the two nothing changes, so the number settles.
  // A chunk that the input's end cut short, or that was taken before another
  // worker changed the number, says nothing about the number.
  if (n == taken_at_once_ && took < kWork / 2) {
    taken_at_once_ = std::min(2 * n, kMostTaken);
  } else if (took > 4 * kWork && n > 1) {
    taken_at_once_ = std::max<int64_t>(1, n / 2);
  }
  return true;
}

ParallelMapDataset::Iterator::ChunkPtr
ParallelMapDataset::Iterator::FindDone() {
  for (auto it = chunks_.begin(); it != chunks_.end(); ++it) {
    if ((*it)->done) {
      ChunkPtr chunk = *it;
      chunks_.erase(it);
      return chunk;
    }
    // Only the first of the queue may go out, however many behind it are done.
    if (ordered_) break;
  }
  return nullptr;
}

Status ParallelMapDataset::Iterator::Next(PullContext& c, Element* out,
                                          bool* end) {
  if (!current_ || current_->next == current_->elements.size()) {
    MutexLock lock(mutex_);
    if (!begun_) Begin(c);
    while (!(current_ = FindDone())) {
      if (chunks_.empty() && input_ended_) {
        *end = true;
        // Said at every call from here on: what was lost cannot come back, and
        // an end that looked clean would hide the loss.
        HR_RETURN_IF_ERROR(broken_);
        return CheckStop();
      }
      if (threads_.empty()) {
        // WorkAlone takes the lock itself, and the function may run for long.
        MutexUnlock open(mutex_);
        WorkAlone(c);
        continue;
      }
      done_.WaitFor(mutex_, kLooksForStop);
      HR_RETURN_IF_ERROR(CheckStop());
    }
    // One chunk left the queue: there is room for one worker's next.
    room_.NotifyOne();
  }
  const size_t i = current_->next++;
  *out = std::move(current_->elements[i]);
  // An element's error does not end the walk, as upstream: the next call gives
  // the element behind it.
  return std::move(current_->errors[i]);
}

Status ParallelMapDataset::Iterator::SaveAhead(PullContext& c, StateWriter& w,
                                               std::vector<Pulled>* ahead) {
  MutexLock pulling(input_mutex_);
  MutexLock lock(mutex_);
  while (outstanding_ > 0) {
    done_.WaitFor(mutex_, kLooksForStop);
    HR_RETURN_IF_ERROR(CheckStop());
  }
  // With the input's lock held no worker begins another chunk, so what lies
  // here and the input's state, saved below, fit together.
  auto gather = [&](const Chunk& chunk) {
    for (size_t i = chunk.next; i < chunk.elements.size(); ++i) {
      ahead->push_back({chunk.elements[i], chunk.errors[i]});
    }
  };
  if (current_) gather(*current_);
  for (const ChunkPtr& chunk : chunks_) gather(*chunk);
  return KeptInputIterator::Save(c, w);
}

Status ParallelMapDataset::Iterator::RestoreAhead(PullContext& c,
                                                  const StateReader& r,
                                                  std::vector<Pulled> ahead) {
  Stop();
  auto chunk = std::make_shared<Chunk>();
  for (Pulled& p : ahead) {
    chunk->elements.push_back(std::move(p.element));
    chunk->errors.push_back(std::move(p.status));
  }
  chunk->done = true;
  HR_RETURN_IF_ERROR(KeptInputIterator::Restore(c, r));
  MutexLock lock(mutex_);
  chunks_.clear();
  current_ = std::move(chunk);
  // The next pull starts the workers anew, behind what was restored.
  begun_ = input_ended_ = false;
  broken_ = OkStatus();
  return OkStatus();
}

Status CheckParallelism(int64_t n) {
  // -1 is tf.data.AUTOTUNE.
  if (n == -1 || n > 0) return OkStatus();
  return InvalidArgument("num_parallel_calls must be greater than zero.");
}

// num_parallel_calls is the last input.
Status MakeParallelMap(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  HR_ASSIGN_OR_RETURN(const int64_t parallel,
                      IntInput(c, c.num_inputs() - 1, "num_parallel_calls"));
  HR_RETURN_IF_ERROR(CheckParallelism(parallel));
  const std::string* text = c.op().attrs().Get<std::string>("deterministic");
  // The first version of the op has `sloppy`, the second `deterministic`; never
  // both.
  const bool* sloppy = c.op().attrs().Get<bool>("sloppy");
  Order order = Order::kOpen;
  if (text != nullptr && *text != "default") {
    order = *text == "false" ? Order::kAny : Order::kKept;
  }
  if (sloppy != nullptr) order = *sloppy ? Order::kAny : Order::kKept;
  return SetDataset<ParallelMapDataset>(c, std::move(spec), std::move(input),
                                        std::move(f), parallel, order);
}

Status MakeMapAndBatch(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  const int last = c.num_inputs() - 1;
  HR_ASSIGN_OR_RETURN(const int64_t size, IntInput(c, last - 2, "batch_size"));
  HR_ASSIGN_OR_RETURN(const int64_t parallel,
                      IntInput(c, last - 1, "num_parallel_calls"));
  HR_ASSIGN_OR_RETURN(const bool drop, BoolInput(c, last, "drop_remainder"));
  HR_RETURN_IF_ERROR(CheckParallelism(parallel));
  ElementSpec mapped = spec;
  for (Shape& s : mapped.shapes) {
    // The op's output_shapes are those of batches; the function gives single
    // elements.
    if (s.known_rank() && s.rank() > 0) s = s.Sub(1, s.rank());
  }
  if (size <= 0) {
    return InvalidArgument("Batch size must be greater than zero.");
  }
  auto map = MakeNested<const ParallelMapDataset>(
      std::move(mapped), std::move(input), std::move(f), parallel,
      Order::kOpen);
  return SetDataset(c,
                    MapAndBatch(std::move(spec), std::move(map), size, drop));
}

HR_OP(ParallelMapDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("num_parallel_calls: int32")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("use_inter_op_parallelism: bool = true")
    .Attr("sloppy: bool = false")
    .Attr("preserve_cardinality: bool = false")
    .Attr("metadata: string = ''")
    .Doc("A function of every element, several at a time.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeParallelMap>);

HR_OP(ParallelMapDatasetV2)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("num_parallel_calls: int64")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("use_inter_op_parallelism: bool = true")
    .Attr("deterministic: string = 'default'")
    .Attr("preserve_cardinality: bool = false")
    .Attr("use_unbounded_threadpool: bool = false")
    .Attr("metadata: string = ''")
    .Doc("A function of every element, several at a time.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeParallelMap>);

HR_OP(MapAndBatchDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("batch_size: int64")
    .Input("num_parallel_calls: int64")
    .Input("drop_remainder: bool")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("preserve_cardinality: bool = false")
    .Attr("metadata: string = ''")
    .Doc("A function of every element, and batches of the results.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeMapAndBatch>);

[[maybe_unused]] const bool kExperimentalMapAndBatch = RegisterLike(
    "ExperimentalMapAndBatchDataset", "MapAndBatchDataset", WithoutMetadata);

}  // namespace
}  // namespace headrace
