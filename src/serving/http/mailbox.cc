#include "serving/http/mailbox.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

namespace headrace::serving {

StatusOr<std::shared_ptr<Mailbox>> Mailbox::Make() {
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) return Unavailable("no eventfd: ", std::strerror(errno));
  return std::shared_ptr<Mailbox>(new Mailbox(fd));
}

Mailbox::~Mailbox() { close(fd_); }

void Mailbox::Wake() {
  const uint64_t one = 1;
  // It fails where the counter is at its end, so that the loop wakes anyway.
  woken_ = write(fd_, &one, sizeof(one)) == sizeof(one) || errno == EAGAIN;
}

Mailbox::Mail Mailbox::Take() {
  const MutexLock lock(mutex_);
  uint64_t count;
  while (read(fd_, &count, sizeof(count)) < 0 && errno == EINTR) continue;
  woken_ = false;
  return std::exchange(mail_, Mail());
}

Mailbox::Mail Mailbox::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  thread_ = std::thread::id();
  return std::exchange(mail_, Mail());
}

}  // namespace headrace::serving
