// What other threads have for a loop. A private header of the room.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "serving/http/http_message.h"

namespace headrace::serving {

class HttpLoop;

// Thread-safe.
class Mailbox {
 public:
  struct Mail {
    std::vector<std::pair<uint64_t, HttpResponse>> answers;
    std::vector<int> sockets;  // new connections
    int evict = 0;             // so many of the silent ones are to go
    bool drain = false, abandon = false, stop = false;
  };

  static StatusOr<std::shared_ptr<Mailbox>> Make();
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Readable when there is mail.
  int fd() const { return fd_; }

  // change(Mail&), and wakes the loop; false where it has ended.
  template <typename F>
  bool Post(F&& change) {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    change(mail_);
    if (!woken_) Wake();
    return true;
  }

  // For the loop's thread:
  void Open(HttpLoop* loop) {
    thread_ = std::this_thread::get_id();
    loop_ = loop;
  }
  Mail Take();
  // No more mail comes; gives what has come.
  Mail Close();

  // The loop, where the calling thread is the loop's; else null.
  HttpLoop* loop_here() const {
    return std::this_thread::get_id() == thread_.load() ? loop_ : nullptr;
  }

 private:
  explicit Mailbox(int fd) : fd_(fd) {}
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int fd_;
  std::atomic<std::thread::id> thread_{};
  HttpLoop* loop_ = nullptr;  // of the loop's thread alone
  Mutex mutex_;
  Mail mail_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace::serving
