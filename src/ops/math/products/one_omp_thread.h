// What calls of oneDNN need around them.
#pragma once

#include <signal.h>

#include <new>

#include "base/library_call.h"
#include "base/threads.h"

extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int n);
}

namespace headrace {

// While it lives, this thread may call oneDNN: OpenMP regions that it opens
// have one thread, as the threads are ours, and no signal's handler runs on it.
// Code that oneDNN generates (2.6's products, with AVX-512) moves the stack
// pointer into memory of the heap, where a handler's frame would overwrite what
// lies beside. Signals wait meanwhile, or other threads take them. The process
// does not end under a call.
class OneOmpThread {
 public:
  // std::bad_alloc where there is no memory.
  OneOmpThread() : saved_(omp_get_max_threads()) {
    if (saved_ != 1 && !known_) [[unlikely]]
      MakeKnown();
    pthread_sigmask(SIG_BLOCK, &Handled(), &signals_);
    if (saved_ != 1) omp_set_num_threads(1);
  }
  ~OneOmpThread() {
    if (saved_ != 1) omp_set_num_threads(saved_);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  OneOmpThread(const OneOmpThread&) = delete;
  OneOmpThread& operator=(const OneOmpThread&) = delete;

 private:
  // All but those that an instruction of this thread raises.
  static const sigset_t& Handled() {
    static const sigset_t set = [] {
      sigset_t s;
      sigfillset(&s);
      for (int n : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
        sigdelset(&s, n);
      }
      return s;
    }();
    return set;
  }

  // OpenMP keeps settings for each thread that sets one, and ends the process
  // where it has no memory for them.
  static void MakeKnown() {
    constexpr size_t kSettings = 4 << 10;  // with room to spare
    if (!threads::HasRoomFor(kSettings)) throw std::bad_alloc();
    omp_set_num_threads(omp_get_max_threads());
    known_ = true;
  }

  static constinit inline thread_local bool known_
      [[gnu::tls_model("initial-exec")]] = false;
  const LibraryCall call_;
  const int saved_;
  sigset_t signals_;
};

}  // namespace headrace
