#include "serving/batch/split_task.h"

#include <utility>

#include "base/guard.h"
#include "base/mutex.h"
#include "serving/batch/batch_tensors.h"

namespace headrace::serving {
namespace {

// What the pieces of one task share.
class Pieces {
 public:
  explicit Pieces(size_t count) : results_(count), left_(count) {}
  void set_done(RunDone done) { done_ = std::move(done); }

  void Finish(size_t piece, StatusOr<Tensors> result) {
    {
      MutexLock lock(mutex_);
      if (result.ok()) {
        results_[piece] = *std::move(result);
      } else if (status_.ok()) {
        status_ = std::move(result).status();
      }
      if (--left_ > 0) return;
    }
    RunDone done = std::move(done_);
    Tensors outputs;
    Status s = Guarded("a batch", [&] { return Join(&outputs); });
    if (s.ok()) return done(std::move(outputs));
    done(std::move(s));
  }

 private:
  // All pieces are there.
  Status Join(Tensors* outputs) {
    MutexLock lock(mutex_);
    HR_RETURN_IF_ERROR(status_);
    std::vector<Tensor> parts(results_.size());
    for (size_t output = 0; output < results_[0].size(); ++output) {
      for (size_t i = 0; i < parts.size(); ++i) {
        parts[i] = results_[i][output];
      }
      HR_ASSIGN_OR_RETURN(Tensor joined, JoinOutputPieces(parts));
      outputs->push_back(std::move(joined));
    }
    return OkStatus();
  }

  RunDone done_;
  Mutex mutex_;
  std::vector<Tensors> results_ ABSL_GUARDED_BY(mutex_);
  Status status_ ABSL_GUARDED_BY(mutex_);
  size_t left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<BatchTask> CutTask(BatchTask& task,
                               absl::Span<const int64_t> sizes) {
  auto shared = std::make_shared<Pieces>(sizes.size());
  std::vector<BatchTask> pieces(sizes.size());
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    BatchTask& piece = pieces[i];
    piece.call = task.call;
    piece.rows = sizes[i];
    piece.enqueued = task.enqueued;
    for (const Tensor& t : task.inputs) {
      piece.inputs.push_back(t.Rows(begin, begin + sizes[i]));
    }
    piece.done = [shared, i](StatusOr<Tensors> result) {
      shared->Finish(i, std::move(result));
    };
    begin += sizes[i];
  }
  shared->set_done(std::move(task.done));
  return pieces;
}

}  // namespace headrace::serving
