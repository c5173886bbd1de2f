#include "serving/access/reread.h"

#include <chrono>
#include <thread>

#include "base/files/files.h"
#include "base/threads.h"

namespace headrace::serving {

namespace {
// Keys and tokens change a few times a day; a rollout waits this long.
constexpr std::chrono::milliseconds kLookEvery{1000};
}  // namespace

StatusOr<std::string> ReadSmallFile(const std::string& path, int64_t most) {
  std::string local;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(path, &local));
  HR_ASSIGN_OR_RETURN(const FileStat info, fs->Stat(local));
  if (info.is_directory) {
    return InvalidArgument(path, " is a folder");
  }
  if (static_cast<int64_t>(info.size) > most) {
    return InvalidArgument(path, " has ", info.size, " bytes, more than ",
                           most);
  }
  HR_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(fs, local));
  return text;
}

struct LookingThread::Impl {
  std::function<void()> look;
  Mutex mutex;
  CondVar changed;
  bool ending ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;

  void Run() {
    auto next = std::chrono::steady_clock::now() + kLookEvery;
    const MutexLock lock(mutex);
    while (!ending) {
      const auto now = std::chrono::steady_clock::now();
      if (now < next) {
        changed.WaitFor(
            mutex, std::chrono::ceil<std::chrono::milliseconds>(next - now));
        continue;
      }
      const MutexUnlock unlock(mutex);
      look();
      next = std::chrono::steady_clock::now() + kLookEvery;
    }
  }
};

LookingThread::LookingThread(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}

StatusOr<std::unique_ptr<LookingThread>> LookingThread::Start(
    std::function<void()> look) {
  auto impl = std::make_unique<Impl>();
  impl->look = std::move(look);
  Impl* running = impl.get();
  HR_ASSIGN_OR_RETURN(impl->thread, StartThread([running] { running->Run(); }));
  return std::unique_ptr<LookingThread>(new LookingThread(std::move(impl)));
}

LookingThread::~LookingThread() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->ending = true;
  }
  impl_->changed.NotifyAll();
  impl_->thread.join();
}

}  // namespace headrace::serving
