// What files say, read again as they change.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/guard.h"
#include "base/mutex.h"
#include "base/status.h"

namespace headrace::serving {

using AccessLog = std::function<void(const std::string&)>;

// A T made of a Source, which is what the files hold and can be compared. Files
// that are broken later leave the T that there is. Thread-safe.
template <typename Source, typename T>
class Reread {
 public:
  struct Ways {
    std::string name;  // what the log calls the files
    std::function<StatusOr<Source>()> read;
    std::function<StatusOr<std::shared_ptr<const T>>(const Source&)> make;
  };

  // Errors are those of reading and making.
  static StatusOr<std::shared_ptr<Reread>> Open(Ways ways) {
    std::shared_ptr<Reread> made(new Reread(std::move(ways)));
    HR_ASSIGN_OR_RETURN(made->seen_, made->ways_.read());
    HR_ASSIGN_OR_RETURN(auto first, made->ways_.make(*made->seen_));
    const MutexLock lock(made->mutex_);
    made->now_ = std::move(first);
    return made;
  }

  std::shared_ptr<const T> now() const {
    const MutexLock lock(mutex_);
    return now_;
  }

  // Reads again. The log is told of what is new and of what is broken, each
  // once. For one thread.
  void Look(const AccessLog& log) {
    const Status s = Guarded("reading a file again", [&] { return Read(log); });
    const std::string error(s.message());
    if (!s.ok() && error != error_) {
      log(absl::StrCat(ways_.name,
                       " is not taken up, the old one stays: ", error));
    }
    error_ = error;
  }

 private:
  explicit Reread(Ways ways) : ways_(std::move(ways)) {}

  Status Read(const AccessLog& log) {
    HR_ASSIGN_OR_RETURN(Source source, ways_.read());
    if (seen_ && source == *seen_) return made_;
    seen_ = std::move(source);
    auto made = ways_.make(*seen_);
    made_ = made.status();
    if (!made.ok()) return made_;
    {
      const MutexLock lock(mutex_);
      now_ = *std::move(made);
    }
    log(absl::StrCat(ways_.name, " has changed and is taken up"));
    return OkStatus();
  }

  const Ways ways_;
  std::optional<Source> seen_;
  Status made_;        // what came of it
  std::string error_;  // that the log was told last
  mutable Mutex mutex_;
  std::shared_ptr<const T> now_ ABSL_GUARDED_BY(mutex_);
};

// A text file of at most so many bytes; InvalidArgument where it is longer, or
// a folder.
StatusOr<std::string> ReadSmallFile(const std::string& path, int64_t most);

// Calls `look` each second on a thread of its own while it lives.
class LookingThread {
 public:
  static StatusOr<std::unique_ptr<LookingThread>> Start(
      std::function<void()> look);
  ~LookingThread();
  LookingThread(const LookingThread&) = delete;
  LookingThread& operator=(const LookingThread&) = delete;

 private:
  struct Impl;
  explicit LookingThread(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::serving
