#include "serving/warmup/warmup.h"

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/files.h"
#include "base/guard.h"
#include "base/mutex.h"
#include "base/threads.h"
#include "serving/metrics/metrics.h"
#include "serving/warmup/one_version.h"
#include "serving/warmup/warmup_file.h"

namespace headrace::serving {
namespace {

constexpr int kMostWarmupThreads = 1024;

// An answer that is waited for.
class Waited {
 public:
  // How often a thread that waits asks whether it should stop.
  static constexpr std::chrono::milliseconds kLook{10};

  template <typename Response>
  Done<Response> done() {
    return [state = state_](StatusOr<Response> response) {
      MutexLock lock(state->mutex);
      state->status = response.status();
      state->changed.NotifyAll();
    };
  }
  // Cancels the call where the thread is to stop.
  Status Wait(Call& call) {
    MutexLock lock(state_->mutex);
    while (!state_->status) {
      state_->changed.WaitFor(state_->mutex, kLook);
      if (StopRequested()) call.stop().Cancel();
    }
    return *state_->status;
  }

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    std::optional<Status> status ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A version and what is asked of it. Thread-safe.
class Warmer {
 public:
  Warmer(ServablePtr version, const WarmupOptions& options)
      : name_(version->id().name),
        options_(options),
        models_(std::move(version)) {}

  Status Run(PredictionLog& log) {
    switch (log.log_type_case()) {
      case PredictionLog::LOG_TYPE_NOT_SET:
        return OkStatus();
      case PredictionLog::kPredictLog:
        return RunAll(options_.answers.predict,
                      *log.mutable_predict_log()->mutable_request());
      case PredictionLog::kClassifyLog:
        return RunAll(options_.answers.classify,
                      *log.mutable_classify_log()->mutable_request());
      case PredictionLog::kRegressLog:
        return RunAll(options_.answers.regress,
                      *log.mutable_regress_log()->mutable_request());
      case PredictionLog::kMultiInferenceLog:
        return RunMultiInference(
            *log.mutable_multi_inference_log()->mutable_request());
      default:
        return Unimplemented("Unsupported log_type for warmup: ",
                             static_cast<int>(log.log_type_case()));
    }
  }

 private:
  // The signature alone is kept of what the record says.
  void Direct(ModelSpec* spec) const {
    spec->set_name(name_);
    spec->clear_version_choice();
  }
  template <typename Request, typename Response>
  Status RunAll(const AnswerFunction<Request, Response>& function,
                Request& request) {
    Direct(request.mutable_model_spec());
    return Repeat(function, request);
  }
  Status RunMultiInference(
      tensorflow::serving::MultiInferenceRequest& request) {
    for (auto& task : *request.mutable_tasks()) {
      Direct(task.mutable_model_spec());
    }
    return Repeat(options_.answers.multi_inference, request);
  }
  template <typename Request, typename Response>
  Status Repeat(const AnswerFunction<Request, Response>& function,
                const Request& request) {
    for (int i = 0; i < options_.request_iterations; ++i) {
      HR_RETURN_IF_ERROR(CheckStop());
      auto call = std::make_shared<Call>();
      Waited waited;
      function(models_, options_.answer_options, call, request,
               waited.done<Response>());
      HR_RETURN_IF_ERROR(waited.Wait(*call));
    }
    return OkStatus();
  }

  const std::string name_;
  const WarmupOptions options_;
  OneVersion models_;
};

// Runs the records on several threads.
class WarmupPool {
 public:
  WarmupPool(Warmer* warmer, int threads) : warmer_(warmer), room_(threads) {}
  // The file's records; then all have run.
  Status Run(
      absl::FunctionRef<Status(absl::FunctionRef<Status(PredictionLog&)>)>
          read) {
    Status s = Guarded("warming up", [&] {
      threads_.reserve(room_);
      HR_RETURN_IF_ERROR(StartThreads());
      return read([this](PredictionLog& log) { return Hand(log); });
    });
    {
      MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    for (std::thread& thread : threads_) thread.join();
    MutexLock lock(mutex_);
    // What ran came before what was read behind it.
    return status_.ok() ? s : status_;
  }

 private:
  Status StartThreads() {
    const StopSources stops = StopSources::OfThisThread();
    for (size_t i = 0; i < room_; ++i) {
      auto thread = StartThread([this, stops] {
        const AdoptedStops adopted(stops);
        Work();
      });
      // Fewer threads do the same.
      if (!thread.ok() && i > 0) break;
      HR_RETURN_IF_ERROR(thread.status());
      threads_.push_back(*std::move(thread));
    }
    return OkStatus();
  }
  Status Hand(PredictionLog& log) {
    MutexLock lock(mutex_);
    while (waiting_.size() >= room_ && status_.ok()) changed_.Wait(mutex_);
    HR_RETURN_IF_ERROR(status_);
    waiting_.push_back(std::move(log));
    changed_.NotifyAll();
    return OkStatus();
  }
  void Work() {
    MutexLock lock(mutex_);
    for (;;) {
      while (waiting_.empty() && !ended_ && status_.ok()) changed_.Wait(mutex_);
      if (waiting_.empty() || !status_.ok()) return;
      PredictionLog log = std::move(waiting_.back());
      waiting_.pop_back();
      changed_.NotifyAll();
      Status s;
      {
        MutexUnlock unlock(mutex_);
        s = Guarded("a warm-up request", [&] { return warmer_->Run(log); });
      }
      if (status_.ok() && !s.ok()) {
        status_ = std::move(s);
        changed_.NotifyAll();
      }
    }
  }

  Warmer* const warmer_;
  const size_t room_;
  std::vector<std::thread> threads_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<PredictionLog> waiting_ ABSL_GUARDED_BY(mutex_);
  Status status_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

Status RunFile(const std::string& path, Warmer& warmer, int threads,
               metrics::Counter& records) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
  const auto read = [&](absl::FunctionRef<Status(PredictionLog&)> run) {
    return ReadWarmupFile(fs, local, path, [&](PredictionLog& log) {
      records.Increment();
      return run(log);
    });
  };
  if (threads > 1) return WarmupPool(&warmer, threads).Run(read);
  return read([&](PredictionLog& log) { return warmer.Run(log); });
}

}  // namespace

StatusOr<WarmupOptions> CheckWarmupOptions(
    const tensorflow::serving::ModelWarmupOptions& options) {
  WarmupOptions checked;
  if (options.has_num_request_iterations()) {
    checked.request_iterations = options.num_request_iterations().value();
  }
  if (options.has_num_model_warmup_threads()) {
    checked.threads = options.num_model_warmup_threads().value();
  }
  if (options.enable_all_batch_sizes_warmup().value()) {
    return Unimplemented("enable_all_batch_sizes_warmup");
  }
  if (checked.request_iterations < 0 || checked.threads < 0) {
    return InvalidArgument(
        "num_request_iterations and num_model_warmup_threads must not be "
        "negative; they are ",
        checked.request_iterations, " and ", checked.threads);
  }
  if (checked.threads > kMostWarmupThreads) {
    return InvalidArgument("num_model_warmup_threads must be at most ",
                           kMostWarmupThreads, "; was ", checked.threads);
  }
  return checked;
}

Status WarmUp(ServablePtr version, const WarmupOptions& options) {
  const std::string folder = version->folder();
  const std::string path = JoinPath(folder, kWarmupFile);
  WarmupOptions used = options;
  if (used.request_iterations == 0) used.request_iterations = 1;
  const auto begin = Call::Clock::now();
  metrics::Counter records({});
  Status s = Guarded("warming up", [&] {
    Warmer warmer(std::move(version), used);
    return RunFile(path, warmer, used.threads, records);
  });
  // A version without records is not told of.
  if (s.ok() && records.value() == 0) return s;
  const StringView code = metrics::CodeName(s);
  const std::chrono::duration<double, std::micro> took =
      Call::Clock::now() - begin;
  metrics::ModelWarmupLatency(folder, code)->Record(took.count());
  metrics::ModelWarmupRecordsRead(folder, code)->Increment(records.value());
  return s;
}

}  // namespace headrace::serving
