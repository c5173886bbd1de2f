// Threads, and the data that each has of its own, made so that memory that ends
// is an error. The C library ends the process where it has no memory for the
// thread-local data of a library, which it makes when a thread first uses it,
// or for the note that a thread_local object has a destructor. So threads begin
// by making the former, and nothing here is a thread_local object with a
// destructor.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/guard.h"
#include "base/status.h"

namespace headrace {
namespace threads {

struct Owned {
  virtual ~Owned() = default;
  Owned* next = nullptr;
};
// Has `object` deleted when the calling thread ends; false where there is no
// memory for that.
[[nodiscard]] bool DeleteWithThread(Owned* object);

template <typename T>
struct OwnedObject final : Owned {
  ~OwnedObject() override { mine = nullptr; }
  T object{};
  static constinit inline thread_local OwnedObject* mine
      [[gnu::tls_model("initial-exec")]] = nullptr;
};

template <typename T>
[[gnu::cold, gnu::noinline]] OwnedObject<T>* MakeOwned() {
  std::unique_ptr<OwnedObject<T>> made(new (std::nothrow) OwnedObject<T>);
  if (made == nullptr || !DeleteWithThread(made.get())) return nullptr;
  return OwnedObject<T>::mine = made.release();
}

// Libraries with at most so many bytes of thread-local data were prepared.
extern constinit thread_local size_t prepared
    [[gnu::tls_model("initial-exec")]];
[[gnu::cold]] bool Prepare(size_t most_bytes);
// Whether there are so many bytes: then they are the next that this thread
// gets, as the C library keeps for a thread what it freed. For libraries that
// end the process where there is no memory.
[[gnu::cold]] bool HasRoomFor(size_t bytes);

StatusOr<std::thread> Start(std::function<void()> body);

}  // namespace threads

// The calling thread's own T, made when it is first asked for and deleted when
// the thread ends. Null where there is no memory for it.
template <typename T>
T* OwnObjectOrNull() {
  auto* mine = threads::OwnedObject<T>::mine;
  if (mine == nullptr) [[unlikely]] {
    mine = threads::MakeOwned<T>();
    if (mine == nullptr) return nullptr;
  }
  return &mine->object;
}
// The same; throws std::bad_alloc.
template <typename T>
T& OwnObject() {
  if (T* mine = OwnObjectOrNull<T>()) [[likely]]
    return *mine;
  throw std::bad_alloc();
}

// The sizes of what PrepareThread makes: that of libraries of C++, and that of
// NumPy too.
inline constexpr size_t kForCpp = 4 << 10, kForPython = 64 << 10;

// Makes the thread-local data of the loaded libraries for the calling thread:
// throwing an exception takes some. False where there is no memory for it; the
// thread should then do nothing. For threads that others have started.
inline bool PrepareThread(size_t most_bytes = kForCpp) {
  return threads::prepared >= most_bytes || threads::Prepare(most_bytes);
}

// A new thread that runs `body`, which must not throw; it is prepared.
// ResourceExhausted where the system gives none (limits on processes or
// memory): callers then do the work themselves or pass the error on. Everything
// but tests starts its threads here.
template <typename F>
StatusOr<std::thread> StartThread(F&& body) {
  try {
    return threads::Start(std::function<void()>(std::forward<F>(body)));
  } catch (...) {
    return CaughtStatus("starting a thread");
  }
}

}  // namespace headrace
