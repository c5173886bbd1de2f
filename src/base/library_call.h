// Calls into libraries that destroy their static objects when the process ends
// (oneDNN). Other threads may be inside such a call then, daemon threads of
// Python above all, and would read what is gone.
#pragma once

namespace headrace {

// While it lives, its thread may be inside such a library. Once the process
// ends, making one never returns, but on the thread that ends it. A few
// nanoseconds; nests.
class LibraryCall {
 public:
  LibraryCall();
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
};

// Waits until no thread is inside such a library, and keeps all but the calling
// one out from then on. The end of Python calls it, and exit(), before static
// objects go. Gives up after ten seconds: longer than any single call takes.
void EndLibraryCalls();

}  // namespace headrace
