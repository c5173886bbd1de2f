// oneDNN under our own threads: its OpenMP stays at one thread.
#pragma once

extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int n);
}

namespace headrace {

// While it lives, OpenMP regions that this thread opens have one thread.
class OneOmpThread {
 public:
  OneOmpThread() : saved_(omp_get_max_threads()) {
    if (saved_ != 1) omp_set_num_threads(1);
  }
  ~OneOmpThread() {
    if (saved_ != 1) omp_set_num_threads(saved_);
  }
  OneOmpThread(const OneOmpThread&) = delete;
  OneOmpThread& operator=(const OneOmpThread&) = delete;

 private:
  const int saved_;
};

}  // namespace headrace
